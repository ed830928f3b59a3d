import pytest

from leaktight.report import render


@pytest.fixture(scope="session")
def report(made):
    """Return a maker of reports from records made by hand."""

    def make(records=None, redact=False, plan=None, versions=None, gallery=None):
        records = made.audit() if records is None else records
        return render(records, plan or made.plan(), versions or made.VERSIONS, gallery or made.gallery(records), redact)

    return make


@pytest.fixture(scope="session")
def whole(report):
    return report()


@pytest.fixture(scope="session")
def passable(report):
    return report(redact=True)

"""The interface for programs and notebooks: an audit of what they have in memory, and its result."""

from leaktight.api.audit import audit_model
from leaktight.api.result import LeakVerdict, ModelAudit, ResultTable, TableRow

__all__ = ["LeakVerdict", "ModelAudit", "ResultTable", "TableRow", "audit_model"]

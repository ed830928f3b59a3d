"""The interface for programs and notebooks: an audit of what they have in memory, and its result."""

from leaktight.api.audit import audit_model
from leaktight.api.result import LeakVerdict, ModelAudit, Table, TableRow

__all__ = ["LeakVerdict", "ModelAudit", "Table", "TableRow", "audit_model"]

"""What we use of torch's private modules.

They may change with any release: torch has an upper bound, and a test looks for them.
"""

from torch._guards import TracingContext, tracing
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["FakeTensorMode", "TorchDispatchMode", "TracingContext", "make_fx", "tracing"]

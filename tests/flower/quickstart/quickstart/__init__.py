"""A small app as any user of Flower may have written it: digits, PyTorch, FedAvg."""

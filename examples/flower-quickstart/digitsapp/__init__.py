"""A small Flower app: handwritten digits, PyTorch, FedAvg, and one line of Leaktight on each side."""

"""The network, the data and the local training."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

TEST = 300
"""How many of the 1,797 digits nobody trains on."""


class Net(nn.Module):
    """Two convolutions and a linear layer, for images of 8x8 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1, stride=2)
        self.fc = nn.Linear(16 * 4 * 4, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Return a score for each class."""
        features = F.gelu(self.conv2(F.gelu(self.conv1(images))))
        return self.fc(features.flatten(1))


def load_data(partition: int, partitions: int, batch_size: int) -> tuple[DataLoader, DataLoader]:
    """Return a participant's own digits, shuffled, and the test set. They come with scikit-learn."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(digits.target)
    own = torch.arange(partition, len(labels) - TEST, partitions)
    train = TensorDataset(images[own], labels[own])
    test = TensorDataset(images[-TEST:], labels[-TEST:])
    return DataLoader(train, batch_size=batch_size, shuffle=True), DataLoader(test, batch_size=100)


def train(
    net: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer, steps: int
) -> tuple[Tensor, Tensor, float]:
    """Take some steps in place; return the examples behind them, their labels, and the mean loss."""
    net.train()
    batches, losses = [], []
    while len(batches) < steps:
        for images, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(images), labels)
            loss.backward()
            optimizer.step()
            batches.append((images, labels))
            losses.append(loss.item())
            if len(batches) == steps:
                break
    images, labels = (torch.cat(parts) for parts in zip(*batches, strict=True))
    return images, labels, sum(losses) / len(losses)


@torch.no_grad()
def test(net: nn.Module, loader: DataLoader) -> tuple[float, float]:
    """Return the mean loss and the accuracy."""
    net.eval()
    loss, correct, count = 0.0, 0, 0
    for images, labels in loader:
        outputs = net(images)
        loss += F.cross_entropy(outputs, labels, reduction="sum").item()
        correct += int((outputs.argmax(1) == labels).sum())
        count += len(labels)
    return loss / count, correct / count

"""A convolutional network reads digits: those of scikit-learn, or drawn ones where it is not."""

import numpy as np

import kernwright as kw


def drawn_digits(count, rng):
    """Images (count, 8, 8) from 0 to 1 of digits of seven segments, moved and noisy, and labels."""
    segments = {  # rows and columns of each bar
        "top": (slice(0, 1), slice(0, 4)), "middle": (slice(3, 4), slice(0, 4)),
        "bottom": (slice(6, 7), slice(0, 4)), "left above": (slice(0, 4), slice(0, 1)),
        "left below": (slice(3, 7), slice(0, 1)), "right above": (slice(0, 4), slice(3, 4)),
        "right below": (slice(3, 7), slice(3, 4)),
    }  # fmt: skip
    missing = [
        {"middle"}, {"top", "middle", "bottom", "left above", "left below"},
        {"left above", "right below"}, {"left above", "left below"},
        {"top", "bottom", "left below"}, {"right above", "left below"}, {"right above"},
        {"middle", "bottom", "left above", "left below"}, set(), {"left below"},
    ]  # fmt: skip
    labels = rng.integers(0, 10, count)
    images = rng.random((count, 8, 8)) * 0.3
    for image, label in zip(images, labels, strict=True):
        down, right = rng.integers(0, 2), rng.integers(0, 5)
        for name, (rows, columns) in segments.items():
            if name not in missing[label]:
                image[down : down + 7, right : right + 4][rows, columns] += 0.7
    return images, labels


def load_digits(rng):
    try:
        from sklearn.datasets import load_digits as load
    except ImportError:
        return drawn_digits(1800, rng)
    found = load()
    order = rng.permutation(len(found.target))
    return found.images[order] / 16, found.target[order]


images, labels = load_digits(np.random.default_rng(0))
x = kw.asarray(images[:, None].astype(np.float32))  # (digits, channels, rows, columns)
labels = kw.asarray(labels.astype(np.int64))
train_x, train_y, test_x, test_y = x[:1536], labels[:1536], x[1536:], labels[1536:]

net = kw.nn.Sequential(
    *(kw.nn.Conv2d(1, 8, 3, padding=1, seed=1), kw.nn.relu),
    *(kw.nn.Conv2d(8, 16, 3, stride=2, padding=1, seed=2), kw.nn.relu),
    lambda x: x.reshape(x.shape[0], -1),
    kw.nn.Linear(16 * 4 * 4, 10, seed=3),
)
optimizer = kw.optim.AdamW(net, lr=kw.optim.cosine(1e-2, total=96))


def loss_of(net, x, labels):
    return kw.nn.cross_entropy(net(x), labels)


@kw.captured
def step(x, labels):
    loss, gradients = kw.value_and_grad(loss_of)(net, x, labels)
    optimizer.step(gradients)
    return loss


for epoch in range(4):
    order = kw.random.permutation(1536, seed=epoch)
    for begin in range(0, 1536, 64):
        rows = order[begin : begin + 64]
        loss = step(train_x[rows], train_y[rows])
    right = kw.mean(kw.astype(kw.argmax(net(test_x), axis=-1) == test_y, kw.float32)).item()
    print(f"epoch {epoch + 1}: loss {loss.item():.3f}, {right:.1%} of the test digits are right")
assert right > 0.93

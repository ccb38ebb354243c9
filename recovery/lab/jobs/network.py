"""A small character model with its optimizer and schedule, in plain Python.

Gradients are whole numbers (units of 2**-40), so that a sum over ranks is exact and does not depend
on their number or order: the same losses to the last digit on eight nodes and on six.
"""

import math
import random

LETTERS, HIDDEN, CONTEXT = 12, 8, 2
UNIT = float(1 << 40)
BETAS, EPSILON, DECAY, CLIP, DROPOUT = (0.9, 0.95), 1e-8, 0.01, 1.0, 0.1
SHAPES = {
    "embed.weight": (CONTEXT * LETTERS, HIDDEN),
    "hidden.bias": (HIDDEN,),
    "head.weight": (LETTERS, HIDDEN),
    "head.bias": (LETTERS,),
}


def n_values(shape):
    """How many numbers a tensor of this shape has."""
    return math.prod(shape)


def fresh_weights(seed):
    """Weights of an untrained model by name."""
    rng = random.Random(seed)
    return {
        name: [rng.gauss(0, 0.3) if "weight" in name else 0.0 for _ in range(n_values(shape))]
        for name, shape in SHAPES.items()
    }


def corpus(n_samples, seed):
    """Samples (letter, letter, next letter) with a rule that can be learnt and some noise."""
    rng = random.Random(seed)
    samples, a, b = [], 0, 1
    for _ in range(n_samples):
        c = (3 * a + 5 * b + 1) % LETTERS if rng.random() < 0.85 else rng.randrange(LETTERS)
        samples.append((a, b, c))
        a, b = b, c if rng.random() < 0.9 else rng.randrange(LETTERS)
    return samples


def dropout_mask(rng):
    """One mask an iteration, the same on every rank: it moves the generator by a fixed amount."""
    return [0.0 if rng.random() < DROPOUT else 1 / (1 - DROPOUT) for _ in range(HIDDEN)]


def gradients(weights, samples, mask):
    """Summed loss and gradient of these samples, as whole numbers."""
    embed, bias = weights["embed.weight"], weights["hidden.bias"]
    head, head_bias = weights["head.weight"], weights["head.bias"]
    sizes = [n_values(s) for s in SHAPES.values()]
    total, loss_sum = [0] * sum(sizes), 0
    at_bias = sizes[0]
    at_head, at_head_bias = at_bias + sizes[1], at_bias + sizes[1] + sizes[2]
    span = range(HIDDEN)
    for a, b, target in samples:
        one, two = a * HIDDEN, (LETTERS + b) * HIDDEN
        hidden = [math.tanh(embed[one + i] + embed[two + i] + bias[i]) for i in span]
        kept = [h * m for h, m in zip(hidden, mask)]
        scores = [
            sum(head[k * HIDDEN + i] * kept[i] for i in span) + head_bias[k] for k in range(LETTERS)
        ]
        top = max(scores)
        powers = [math.exp(s - top) for s in scores]
        whole = math.fsum(powers)
        loss_sum += round((math.log(whole) + top - scores[target]) * UNIT)
        back = [0.0] * HIDDEN
        for k in range(LETTERS):
            slope = powers[k] / whole - (k == target)
            total[at_head_bias + k] += round(slope * UNIT)
            row = k * HIDDEN
            for i in span:
                total[at_head + row + i] += round(slope * kept[i] * UNIT)
                back[i] += slope * head[row + i]
        for i in span:
            inner = round(back[i] * mask[i] * (1 - hidden[i] * hidden[i]) * UNIT)
            total[one + i] += inner
            total[two + i] += inner
            total[at_bias + i] += inner
    return [loss_sum, *total]


def learning_rate(step, total, peak=0.02, warmup=10):
    """Linear warm-up, then a cosine down to a tenth of the peak."""
    if step <= warmup:
        return peak * step / warmup
    part = min(1.0, (step - warmup) / max(1, total - warmup))
    return peak * (0.1 + 0.45 * (1 + math.cos(math.pi * part)))


def update(weights, moments, step, gradient, rate):
    """One AdamW step in place; returns the gradient's norm before clipping."""
    norm = math.sqrt(math.fsum(g * g for g in gradient))
    scale = min(1.0, CLIP / (norm + 1e-6))
    at = 0
    first_fix, second_fix = 1 - BETAS[0] ** step, 1 - BETAS[1] ** step
    for name, values in weights.items():
        first, second = moments[name]
        for i, value in enumerate(values):
            g = gradient[at + i] * scale
            first[i] = BETAS[0] * first[i] + (1 - BETAS[0]) * g
            second[i] = BETAS[1] * second[i] + (1 - BETAS[1]) * g * g
            move = first[i] / first_fix / (math.sqrt(second[i] / second_fix) + EPSILON)
            values[i] = value - rate * (move + DECAY * value)
        at += len(values)
    return norm

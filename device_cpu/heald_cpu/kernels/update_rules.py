"""The formulas of optimizers' updates. A function returns the new arrays of the variables, the trained one first, from
the old arrays, numbers, and the gradient, in the order of the op's inputs.

The formulas come from TensorFlow's training_ops.cc, with its order of operations: each rounds to the type of the
variables. If the sparse form of an op has another order, it is another function here. Arrays are of one shape, which is
not (). The functions do not write the given arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from heald.api import errors

from ..element_types import NARROW, Array

Number = np.floating[Any]  # or a complex number: of the arrays' type
Arrays = tuple[Array, ...]
Minimum = Callable[[Array, Number, Array], Array]


def reciprocal_root(x: Array) -> Array:
    """1 / sqrt(x), rounded once for two-byte floats."""
    wide = x.astype(np.float32) if x.dtype.name in NARROW else x
    root: Array = (1 / np.sqrt(wide)).astype(x.dtype)
    return root


def towards(old: Array, new: Array, part: Number) -> Array:
    """old + (new - old) * part"""
    step: Array = new - old
    step *= part
    step += old
    return step


def weighted_mean(old: Array, new: Array, part: Number) -> Array:
    """old * part + new * (1 - part)"""
    mixture: Array = old * part
    mixture += new * (1 - part)
    return mixture


def adam_step(var: Array, mean: Array, rate: Number, squares: Array, epsilon: Number) -> Array:
    """var - mean * rate / (sqrt(squares) + epsilon)"""
    root, step = np.sqrt(squares), mean * rate
    root += epsilon
    step /= root
    return np.subtract(var, step, out=step)


def larger(old: Array, new: Array) -> Array:
    """The larger elements. A NaN in `old` stays, a NaN in `new` is ignored."""
    return np.where(old < new, new, old)


def soft_threshold(x: Array, by: Array | Number) -> Array:
    """`x` moved towards 0 by `by`. Elements nearer to 0 than `by` become 0."""
    reduced: Array = np.sign(x) * np.maximum(np.abs(x) - by, 0)
    return reduced


def gradient_descent(var: Array, rate: Number, grad: Array) -> Arrays:
    return (var - grad * rate,)


def proximal_gradient_descent(var: Array, rate: Number, l1: Number, l2: Number, grad: Array) -> Arrays:
    return (proximal(var - grad * rate, rate, l1, l2),)


def proximal(var: Array, rate: Array | Number, l1: Number, l2: Number) -> Array:
    return (soft_threshold(var, rate * l1) if l1 > 0 else var) / (1 + l2 * rate)


def momentum(var: Array, accum: Array, lr: Number, grad: Array, part: Number, *, use_nesterov: bool) -> Arrays:
    accum = accum * part + grad
    return var - (grad * lr + accum * part * lr if use_nesterov else accum * lr), accum


def sparse_momentum(var: Array, accum: Array, lr: Number, grad: Array, part: Number, *, use_nesterov: bool) -> Arrays:
    accum = accum * part + grad
    return var - (lr * grad + lr * part * accum if use_nesterov else lr * accum), accum


def keras_momentum(var: Array, accum: Array, lr: Number, grad: Array, part: Number, *, use_nesterov: bool) -> Arrays:
    step = grad * lr
    accum = accum * part - step
    return var + (accum * part - step if use_nesterov else accum), accum


def adagrad(var: Array, accum: Array, lr: Number, grad: Array, *, update_slots: bool) -> Arrays:
    accum = accum + grad * grad if update_slots else accum
    return var - grad * lr * reciprocal_root(accum), accum


def adagrad_v2(
    var: Array, accum: Array, lr: Number, epsilon: Number, grad: Array, *, update_slots: bool,
) -> Arrays:
    accum = accum + grad * grad if update_slots else accum
    return adam_step(var, grad, lr, accum, epsilon), accum


def adagrad_da(
    _: Array, total: Array, squares: Array, grad: Array, lr: Number, l1: Number, l2: Number, steps: Number,
) -> Arrays:
    count = lr.dtype.type(steps)
    total, squares = total + grad, squares + grad * grad
    least = soft_threshold(total, count * l1) if l1 > 0 else total
    return -lr * least / (l2 * (count * lr) + np.sqrt(squares)), total, squares


def sparse_adagrad_da(
    _: Array, total: Array, squares: Array, grad: Array, lr: Number, l1: Number, l2: Number, steps: Number,
) -> Arrays:
    count = lr.dtype.type(steps)
    total, squares = total + grad, squares + grad * grad
    mean = total / count
    least = np.sign(total) * np.maximum(np.abs(mean) - l1, 0) if l1 > 0 else mean
    return -least / (l2 + np.sqrt(squares) / (count * lr)), total, squares


def proximal_adagrad(var: Array, accum: Array, lr: Number, l1: Number, l2: Number, grad: Array) -> Arrays:
    accum = accum + grad * grad
    rate = lr * reciprocal_root(accum)
    return proximal(var - grad * rate, rate, l1, l2), accum


def adadelta(
    var: Array, accum: Array, accum_update: Array, lr: Number, rho: Number, epsilon: Number, grad: Array,
) -> Arrays:
    accum = weighted_mean(accum, grad * grad, rho)
    update = np.sqrt(accum_update + epsilon) * reciprocal_root(accum + epsilon) * grad
    return var - update * lr, accum, weighted_mean(accum_update, update * update, rho)


def adam(
    var: Array, m: Array, v: Array, beta1_power: Number, beta2_power: Number, lr: Number, beta1: Number, beta2: Number,
    epsilon: Number, grad: Array, *, use_nesterov: bool,
) -> Arrays:
    rate = adam_rate(lr, beta1_power, beta2_power)
    m, v = towards(m, grad, 1 - beta1), towards(v, grad * grad, 1 - beta2)
    mean = grad * (1 - beta1) + beta1 * m if use_nesterov else m
    return adam_step(var, mean, rate, v, epsilon), m, v


def adam_rate(lr: Number, beta1_power: Number, beta2_power: Number) -> Number:
    rate: Number = lr * np.sqrt(1 - beta2_power) / (1 - beta1_power)
    return rate


def amsgrad(
    var: Array, m: Array, v: Array, vhat: Array, beta1_power: Number, beta2_power: Number, lr: Number, beta1: Number,
    beta2: Number, epsilon: Number, grad: Array,
) -> Arrays:
    rate = adam_rate(lr, beta1_power, beta2_power)
    m, v = towards(m, grad, 1 - beta1), towards(v, grad * grad, 1 - beta2)
    vhat = larger(vhat, v)
    return adam_step(var, m, rate, vhat, epsilon), m, v, vhat


def adamax(
    var: Array, m: Array, v: Array, beta1_power: Number, lr: Number, beta1: Number, beta2: Number, epsilon: Number,
    grad: Array,
) -> Arrays:
    m = towards(m, grad, 1 - beta1)
    v = larger(beta2 * v, np.abs(grad))
    return var - lr / (1 - beta1_power) * (m / (v + epsilon)), m, v


def rms_prop(
    var: Array, ms: Array, mom: Array, lr: Number, rho: Number, part: Number, epsilon: Number, grad: Array,
) -> Arrays:
    ms = towards(ms, grad * grad, 1 - rho)
    mom = mom * part + grad * lr / np.sqrt(ms + epsilon)
    return var - mom, ms, mom


def sparse_rms_prop(
    var: Array, ms: Array, mom: Array, lr: Number, rho: Number, part: Number, epsilon: Number, grad: Array,
) -> Arrays:
    ms = weighted_mean(ms, grad * grad, rho)
    mom = mom * part + reciprocal_root(ms + epsilon) * lr * grad
    return var - mom, ms, mom


def centered_rms_prop(
    var: Array, mg: Array, ms: Array, mom: Array, lr: Number, rho: Number, part: Number, epsilon: Number, grad: Array,
) -> Arrays:
    mg, ms = towards(mg, grad, 1 - rho), towards(ms, grad * grad, 1 - rho)
    mom = mom * part + grad * lr / np.sqrt(ms - mg * mg + epsilon)
    return var - mom, mg, ms, mom


def sparse_centered_rms_prop(
    var: Array, mg: Array, ms: Array, mom: Array, lr: Number, rho: Number, part: Number, epsilon: Number, grad: Array,
) -> Arrays:
    mg, ms = weighted_mean(mg, grad, rho), weighted_mean(ms, grad * grad, rho)
    mom = mom * part + reciprocal_root(ms + epsilon - mg * mg) * lr * grad
    return var - mom, mg, ms, mom


def add_sign(
    var: Array, m: Array, lr: Number, alpha: Number, sign_decay: Number, beta: Number, grad: Array,
) -> Arrays:
    m = weighted_mean(m, grad, beta)
    return var - lr * (alpha + sign_decay * (np.sign(grad) * np.sign(m))) * grad, m


def power_sign(
    var: Array, m: Array, lr: Number, logbase: Number, sign_decay: Number, beta: Number, grad: Array,
) -> Arrays:
    m = weighted_mean(m, grad, beta)
    return var - lr * np.exp(logbase * sign_decay * (np.sign(grad) * np.sign(m))) * grad, m


def beyond_limit(linear: Array, limit: Number, quadratic: Array) -> Array:
    """The x that minimises `linear` x + `quadratic` x**2 / 2 + `limit` |x|."""
    return np.where(np.abs(linear) > limit, (limit * np.sign(linear) - linear) / quadratic, np.zeros_like(linear))


def beyond_limits(linear: Array, limit: Number, quadratic: Array) -> Array:
    """The same minimum by the formula of the sparse ops."""
    quotient: Array = (np.maximum(np.minimum(linear, limit), -limit) - linear) / quadratic
    return quotient


def ftrl(
    var: Array, accum: Array, linear: Array, grad: Array, lr: Number, l1: Number, l2: Number, lr_power: Number, *,
    multiply_linear_by_lr: bool, minimum: Minimum = beyond_limit,
) -> Arrays:
    return leader(var, accum, linear, grad, grad, lr, l1, l2, lr_power, multiply_linear_by_lr, minimum)


def ftrl_v2(
    var: Array, accum: Array, linear: Array, grad: Array, lr: Number, l1: Number, l2: Number, l2_shrinkage: Number,
    lr_power: Number, *, multiply_linear_by_lr: bool, minimum: Minimum = beyond_limit,
) -> Arrays:
    shrunk_grad = grad + 2 * l2_shrinkage * var
    return leader(var, accum, linear, grad, shrunk_grad, lr, l1, l2, lr_power, multiply_linear_by_lr, minimum)


def leader(
    var: Array, accum: Array, linear: Array, grad: Array, shrunk_grad: Array, lr: Number, l1: Number, l2: Number,
    lr_power: Number, scaled: bool, minimum: Minimum,
) -> Arrays:
    """`shrunk_grad`: the gradient with shrinkage. `scaled`: `linear` is kept multiplied by lr."""
    squares = accum + grad * grad
    root = np.sqrt(squares) if lr_power == -0.5 else squares**-lr_power
    risen = root - (np.sqrt(accum) if lr_power == -0.5 else accum**-lr_power)
    if scaled:
        linear = linear + (shrunk_grad * lr - risen * var)
        return minimum(linear, l1 * lr, root + 2 * l2 * lr), squares, linear
    linear = linear + (shrunk_grad - risen / lr * var)
    return minimum(linear, l1, root / lr + 2 * l2), squares, linear


def check_proximal(lr: Number, l1: Number, l2: Number) -> None:
    if not lr > 0:
        raise errors.InvalidArgument(f"lr is not a positive scalar: {lr}")
    check_strengths(l1=l1, l2=l2)


def check_ftrl(lr: Number, l1: Number, l2: Number, lr_power: Number, *, multiply_linear_by_lr: bool) -> None:
    check_ftrl_v2(lr, l1, l2, l2, lr_power, multiply_linear_by_lr=multiply_linear_by_lr)


def check_ftrl_v2(
    lr: Number, l1: Number, l2: Number, l2_shrinkage: Number, lr_power: Number, *, multiply_linear_by_lr: bool,
) -> None:
    if not (lr > 0 or (multiply_linear_by_lr and lr == 0)):
        raise errors.InvalidArgument(f"lr is not a positive scalar (or zero if multiply_linear_by_lr is set): {lr}")
    check_strengths(l1=l1, l2=l2, l2_shrinkage=l2_shrinkage)
    if not lr_power <= 0:
        raise errors.InvalidArgument(f"lr_power is not a non-positive scalar: {lr_power}")


def check_strengths(**strengths: Number) -> None:
    for name, strength in strengths.items():
        if not strength >= 0:
            raise errors.InvalidArgument(f"{name} regularization strength is not a non-negative scalar: {strength}")

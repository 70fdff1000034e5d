"""Policies of reinforcement learning, with the state and the randomness that they serve with."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from cases import KerasModel, Served
from weights import Rng, normal, perturb, variable

layers = tf.keras.layers
OBSERVED, ACTIONS = 6, 4
SEED_SPEC = tf.TensorSpec([2], tf.int32, name="seed")
OBSERVATIONS = tf.TensorSpec([None, OBSERVED], tf.float32, name="observations")


def _network(rng: Rng, outputs: int) -> tf.Module:
    holder = tf.Module()
    holder.w1, holder.b1 = variable(rng, OBSERVED, 16), variable(rng, 16, scale=0.3)
    holder.w2, holder.b2 = variable(rng, 16, outputs), variable(rng, outputs, scale=0.3)
    return holder


def _outputs(holder: tf.Module, x: tf.Tensor) -> tf.Tensor:
    return tf.tanh(x @ holder.w1 + holder.b1) @ holder.w2 + holder.b2


def _calls(rng: Rng) -> list[dict[str, np.ndarray]]:
    return [
        {"observations": normal(rng, rows, OBSERVED, scale=1.0), "seed": np.array([rows, 9], np.int32)}
        for rows in (5, 2)
    ]


def duelling_values(rng: Rng) -> KerasModel:
    """DQN: values and advantages, and the best action."""
    entry = tf.keras.Input((OBSERVED,), name="observations")
    x = layers.Dense(16, activation="relu")(entry)
    value, advantage = layers.Dense(1)(x), layers.Dense(ACTIONS)(x)
    values = layers.Lambda(
        lambda pair: pair[0] + pair[1] - tf.reduce_mean(pair[1], 1, keepdims=True), output_shape=(ACTIONS,)
    )([value, advantage])
    model = perturb(tf.keras.Model(entry, {"values": values}), rng, 0.3)
    return KerasModel(model, [{"observations": normal(rng, 4, OBSERVED, scale=1.0)}])


def categorical(rng: Rng) -> Served:
    """Actor and critic: a drawn action, its log-probability, the entropy, the value."""
    holder = _network(rng, ACTIONS + 1)

    @tf.function(input_signature=[OBSERVATIONS, SEED_SPEC])
    def act(observations: tf.Tensor, seed: tf.Tensor) -> dict[str, tf.Tensor]:
        logits, value = tf.split(_outputs(holder, observations), [ACTIONS, 1], 1)
        action = tf.random.stateless_categorical(logits, 1, seed, tf.int32)[:, 0]
        log_p = tf.nn.log_softmax(logits)
        return {
            "action": action,
            "log_p": tf.gather(log_p, action, batch_dims=1),
            "value": value[:, 0],
            "entropy": -tf.reduce_sum(tf.exp(log_p) * log_p, 1),
        }

    return Served(holder, {"serving_default": act}, _calls(rng))


def squashed_normal(rng: Rng) -> Served:
    """SAC: a normal draw through tanh, with the correction of its density."""
    holder = _network(rng, 6)

    @tf.function(input_signature=[OBSERVATIONS, SEED_SPEC])
    def act(observations: tf.Tensor, seed: tf.Tensor) -> dict[str, tf.Tensor]:
        mean, log_deviation = tf.split(_outputs(holder, observations), 2, 1)
        log_deviation = tf.clip_by_value(log_deviation, -5.0, 2.0)
        noise = tf.random.stateless_normal(tf.shape(mean), seed)
        raw = mean + noise * tf.exp(log_deviation)
        density = -0.5 * noise**2 - log_deviation - 0.5 * np.log(2 * np.pi)
        correction = 2.0 * (np.log(2.0) - raw - tf.nn.softplus(-2.0 * raw))
        return {"action": tf.tanh(raw), "log_p": tf.reduce_sum(density - correction, 1)}

    return Served(holder, {"serving_default": act}, _calls(rng))


def exploring(rng: Rng) -> Served:
    """Epsilon-greedy, whose epsilon falls with each call: a variable counts the calls."""
    holder = _network(rng, ACTIONS)
    holder.step = tf.Variable(0, dtype=tf.int64)

    @tf.function(input_signature=[OBSERVATIONS, SEED_SPEC])
    def act(observations: tf.Tensor, seed: tf.Tensor) -> dict[str, tf.Tensor]:
        step = holder.step.assign_add(1)
        epsilon = tf.maximum(0.1, 0.9 * 0.5 ** tf.cast(step, tf.float32))
        rows = tf.shape(observations)[0]
        dice, other = (
            tf.random.stateless_uniform([rows], seed),
            tf.random.stateless_uniform([rows], seed + 1, 0, ACTIONS, tf.int32),
        )
        best = tf.argmax(_outputs(holder, observations), 1, tf.int32)
        return {"action": tf.where(dice < epsilon, other, best), "epsilon": epsilon}

    calls = _calls(rng)
    return Served(holder, {"serving_default": act}, [*calls, *calls])


def recurrent_policy(rng: Rng) -> Served:
    """The state of an LSTM goes in and out; episodes that begin reset it."""
    cell, holder = tf.keras.layers.LSTMCell(8), tf.Module()
    cell.build((None, OBSERVED))
    holder.cell, holder.head = cell, variable(rng, 8, ACTIONS, scale=1.0)

    @tf.function(
        input_signature=[
            OBSERVATIONS,
            tf.TensorSpec([None, 8], tf.float32, name="h"),
            tf.TensorSpec([None, 8], tf.float32, name="c"),
            tf.TensorSpec([None], tf.bool, name="first"),
        ]
    )
    def act(observations: tf.Tensor, h: tf.Tensor, c: tf.Tensor, first: tf.Tensor) -> dict[str, tf.Tensor]:
        h, c = (tf.where(first[:, None], 0.0, state) for state in (h, c))
        y, (h, c) = cell(observations, [h, c])
        return {"action": tf.argmax(y @ holder.head, 1, tf.int32), "h": h, "c": c}

    return Served(
        holder,
        {"serving_default": act},
        [
            {
                "observations": normal(rng, 3, OBSERVED, scale=1.0),
                "h": normal(rng, 3, 8, scale=0.5),
                "c": normal(rng, 3, 8, scale=0.5),
                "first": np.array([True, False, False]),
            }
        ],
    )


def planner(rng: Rng) -> Served:
    """Cross-entropy planning through a learned model of the world: loops in loops, with the elite of each round."""
    holder = tf.Module()
    holder.w, holder.u, holder.reward = (
        variable(rng, 4, 4, scale=0.5),
        variable(rng, 2, 4, scale=0.5),
        variable(rng, 4, scale=1.0),
    )

    @tf.function(input_signature=[tf.TensorSpec([4], tf.float32, name="state"), SEED_SPEC])
    def plan(state: tf.Tensor, seed: tf.Tensor) -> dict[str, tf.Tensor]:
        mean, deviation = tf.zeros([5, 2]), tf.ones([5, 2])
        for round_number in tf.range(4):
            noise = tf.random.stateless_normal([24, 5, 2], seed + round_number)
            actions = mean + deviation * noise
            x, total = tf.tile(state[None], [24, 1]), tf.zeros([24])
            for step in tf.range(5):
                x = tf.tanh(x @ holder.w + actions[:, step] @ holder.u)
                total += tf.linalg.matvec(x, holder.reward)
            elite = tf.gather(actions, tf.math.top_k(total, 6).indices)
            mean, deviation = tf.reduce_mean(elite, 0), tf.math.reduce_std(elite, 0) + 0.05
        return {"action": mean[0], "plan": mean}

    return Served(
        holder,
        {"serving_default": plan},
        [{"state": normal(rng, 4, scale=1.0), "seed": np.array([n, 1], np.int32)} for n in (1, 2)],
    )


def replay_buffer(rng: Rng) -> Served:
    """A ring of the last observations, in a variable, with their mean."""
    holder = tf.Module()
    holder.ring, holder.next = tf.Variable(tf.zeros([6, OBSERVED])), tf.Variable(0)

    @tf.function(input_signature=[OBSERVATIONS])
    def add(observations: tf.Tensor) -> dict[str, tf.Tensor]:
        rows = tf.shape(observations)[0]
        places = (holder.next + tf.range(rows)) % 6
        holder.ring.scatter_nd_update(places[:, None], observations)
        holder.next.assign((holder.next + rows) % 6)
        return {"mean": tf.reduce_mean(holder.ring, 0), "next": holder.next.read_value()}

    return Served(
        holder, {"serving_default": add}, [{"observations": normal(rng, n, OBSERVED, scale=1.0)} for n in (3, 2, 4)]
    )

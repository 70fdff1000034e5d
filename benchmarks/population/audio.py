"""Audio: spectrograms, mel features, CTC, waves."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from cases import KerasModel, Served
from weights import Rng, normal, perturb, variable

RATE = 4000
layers = tf.keras.layers


def _sound(rng: Rng, *shape: int) -> np.ndarray:
    time = np.arange(shape[-1]) / RATE
    tones = rng.uniform(100, 1500, (*shape[:-1], 1))
    return (0.4 * np.sin(2 * np.pi * tones * time) + rng.normal(0, 0.05, shape)).astype(np.float32)


def mel_classifier(rng: Rng, window: str = "hann_window") -> Served:
    """Sound to log mel features, to classes."""
    holder = tf.Module()
    holder.kernel, holder.head = variable(rng, 3, 3, 1, 8, scale=0.5), variable(rng, 8, 4)

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32, name="sound")])
    def classify(sound: tf.Tensor) -> dict[str, tf.Tensor]:
        spectrogram = tf.abs(tf.signal.stft(sound, 256, 128, window_fn=getattr(tf.signal, window)))
        mel = tf.tensordot(spectrogram, tf.signal.linear_to_mel_weight_matrix(20, 129, RATE, 50.0, 1900.0), 1)
        features = tf.math.log(mel + 1e-3)
        y = tf.nn.relu(tf.nn.conv2d(features[..., None], holder.kernel, 2, "SAME"))
        return {
            "logits": tf.reduce_mean(y, [1, 2]) @ holder.head,
            "mfcc": tf.signal.mfccs_from_log_mel_spectrograms(features),
        }

    return Served(
        holder, {"serving_default": classify}, [{"sound": _sound(rng, 2, 2000)}, {"sound": _sound(rng, 1, 700)}]
    )


def wave_file(rng: Rng) -> Served:
    """Bytes of a WAV file to loudness and spectrum."""
    holder = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([], tf.string, name="data")])
    def measure(data: tf.Tensor) -> dict[str, tf.Tensor]:
        sound, rate = tf.audio.decode_wav(data, 1)
        frames = tf.signal.frame(sound[:, 0], 128, 64, pad_end=True)
        return {
            "rate": rate,
            "loudness": tf.sqrt(tf.reduce_mean(frames**2, 1)),
            "spectrum": tf.abs(tf.signal.rfft(frames)),
        }

    data = np.array(tf.audio.encode_wav(_sound(rng, 900)[:, None], RATE).numpy(), object)
    return Served(holder, {"serving_default": measure}, [{"data": data}])


def spectrum_and_back(rng: Rng) -> Served:
    """A filter in the frequencies: STFT, a mask, the inverse."""
    holder = tf.Module()
    holder.mask = tf.Variable(rng.uniform(0, 1, 65).astype(np.float32))

    @tf.function(input_signature=[tf.TensorSpec([None, 1024], tf.float32, name="sound")])
    def denoise(sound: tf.Tensor) -> dict[str, tf.Tensor]:
        bins = tf.signal.stft(sound, 128, 64) * tf.cast(holder.mask, tf.complex64)
        back = tf.signal.inverse_stft(bins, 128, 64, window_fn=tf.signal.inverse_stft_window_fn(64))
        return {"sound": back, "phase": tf.math.angle(bins)[:, :, 5:20] * 0.1}

    return Served(holder, {"serving_default": denoise}, [{"sound": _sound(rng, 2, 1024)}])


def cosine_transforms(rng: Rng) -> Served:
    holder = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([None, 32], tf.float32, name="x")])
    def transform(x: tf.Tensor) -> dict[str, tf.Tensor]:
        outputs = {f"dct{kind}": tf.signal.dct(x, kind) for kind in (1, 2, 3, 4)}
        return {
            **outputs,
            "idct": tf.signal.idct(x),
            "mdct": tf.signal.mdct(x, 16),
            "overlap": tf.signal.overlap_and_add(tf.reshape(x, [-1, 4, 8]), 4),
        }

    return Served(holder, {"serving_default": transform}, [{"x": normal(rng, 3, 32, scale=1.0)}])


def speech(rng: Rng, decoder: str) -> Served:
    """Features through a GRU to letters, by CTC: greedy or with beams."""
    body = perturb(
        tf.keras.Sequential(
            [
                tf.keras.Input((None, 8)),
                layers.Conv1D(12, 3, padding="same", activation="relu"),
                layers.Bidirectional(layers.GRU(10, return_sequences=True)),
                layers.Dense(7),
            ]
        ),
        rng,
        0.5,
    )
    holder = tf.Module()
    holder.body = body

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, 8], tf.float32, name="x"),
            tf.TensorSpec([None], tf.int32, name="lengths"),
        ]
    )
    def transcribe(x: tf.Tensor, lengths: tf.Tensor) -> dict[str, tf.Tensor]:
        logits = 4.0 * tf.transpose(body(x), [1, 0, 2])
        if decoder == "greedy":
            letters, scores = tf.nn.ctc_greedy_decoder(logits, lengths)
        else:
            letters, scores = tf.nn.ctc_beam_search_decoder(logits, lengths, beam_width=8)
        return {"letters": tf.sparse.to_dense(letters[0], default_value=-1), "scores": scores}

    return Served(
        holder,
        {"serving_default": transcribe},
        [{"x": normal(rng, 3, 14, 8, scale=1.5), "lengths": np.array([14, 9, 5], np.int32)}],
    )


def ctc_loss(rng: Rng) -> Served:
    """The loss as a signature for evaluation."""
    holder = tf.Module()

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, 6], tf.float32, name="logits"),
            tf.TensorSpec([None, None], tf.int32, name="labels"),
            tf.TensorSpec([None], tf.int32, name="lengths"),
        ]
    )
    def evaluate(logits: tf.Tensor, labels: tf.Tensor, lengths: tf.Tensor) -> dict[str, tf.Tensor]:
        loss = tf.nn.ctc_loss(
            labels,
            logits,
            tf.fill([tf.shape(labels)[0]], tf.shape(labels)[1]),
            lengths,
            logits_time_major=False,
            blank_index=-1,
        )
        return {"loss": loss}

    return Served(
        holder,
        {"serving_default": evaluate},
        [
            {
                "logits": normal(rng, 3, 10, 6, scale=1.0),
                "labels": rng.integers(0, 5, (3, 4)).astype(np.int32),
                "lengths": np.array([10, 9, 8], np.int32),
            }
        ],
    )


def dilated_waves(rng: Rng) -> KerasModel:
    """WaveNet: causal dilated convolutions with gates."""
    entry = x = tf.keras.Input((None, 1))
    x = layers.Conv1D(8, 1)(x)
    skips = []
    for rate in (1, 2, 4, 8):
        gate = layers.Conv1D(8, 2, padding="causal", dilation_rate=rate, activation="sigmoid")(x)
        y = layers.Multiply()([layers.Conv1D(8, 2, padding="causal", dilation_rate=rate, activation="tanh")(x), gate])
        x = layers.Add()([x, layers.Conv1D(8, 1)(y)])
        skips.append(y)
    outputs = layers.Conv1D(5, 1)(layers.ReLU()(layers.Add()(skips)))
    return KerasModel(perturb(tf.keras.Model(entry, outputs), rng), [{"sound": _sound(rng, 2, 100)[..., None]}])


def keyword_spotting(rng: Rng) -> KerasModel:
    """Depthwise separable convolutions over spectrogram frames."""
    from weights import calibrate

    entry = x = tf.keras.Input((49, 10, 1))
    x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(16, (10, 4), (2, 2), padding="same")(x)))
    for _ in range(3):
        x = layers.ReLU()(layers.BatchNormalization()(layers.DepthwiseConv2D(3, padding="same")(x)))
        x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(16, 1)(x)))
    model = tf.keras.Model(entry, layers.Dense(6, activation="softmax")(layers.GlobalAveragePooling2D()(x)))
    perturb(model, rng, 0.2)
    calibrate(model, [normal(rng, 8, 49, 10, 1, scale=1.0) for _ in range(4)])
    return KerasModel(model, [{"frames": normal(rng, 3, 49, 10, 1, scale=1.0)}])

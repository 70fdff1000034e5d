"""Networks for images beyond classification."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from cases import KerasModel, Served
from weights import BATCHES, Rng, calibrate, normal, perturb, variable

layers = tf.keras.layers
Input = tf.keras.Input


def _finish(model, rng: Rng, shape: tuple[int, ...], batch: int = 2) -> KerasModel:
    perturb(model, rng)
    calibrate(model, [normal(rng, 4, *shape, scale=1.0) for _ in range(BATCHES)])
    return KerasModel(
        model, [{"images": normal(rng, batch, *shape, scale=1.0)}, {"images": normal(rng, 1, *shape, scale=1.0)}]
    )


def _conv(x, filters: int, stride: int = 1):
    x = layers.Conv2D(filters, 3, stride, padding="same", use_bias=False)(x)
    return layers.ReLU()(layers.BatchNormalization()(x))


def u_net(rng: Rng, upsample: str = "transpose") -> KerasModel:
    entry = x = Input((32, 32, 3))
    skips = []
    for width in (8, 16):
        x = _conv(_conv(x, width), width)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = _conv(x, 24)
    for width, skip in zip((16, 8), reversed(skips), strict=True):
        if upsample == "transpose":
            x = layers.Conv2DTranspose(width, 2, 2, padding="same")(x)
        else:
            x = layers.UpSampling2D(2, interpolation=upsample)(x)
        x = _conv(layers.Concatenate()([x, skip]), width)
    return _finish(tf.keras.Model(entry, layers.Conv2D(4, 1, activation="softmax")(x)), rng, (32, 32, 3))


def pyramid_pooling(rng: Rng) -> KerasModel:
    """DeepLab: dilated convolutions side by side, and image pooling."""
    entry = Input((24, 24, 3))
    x = _conv(_conv(entry, 8, 2), 12)
    branches = [layers.Conv2D(6, 3, dilation_rate=rate, padding="same", activation="relu")(x) for rate in (1, 2, 4)]
    pooled = layers.Conv2D(6, 1)(layers.GlobalAveragePooling2D(keepdims=True)(x))
    branches.append(layers.UpSampling2D(12, interpolation="bilinear")(pooled))
    x = layers.Conv2D(3, 1)(layers.Concatenate()(branches))
    return _finish(tf.keras.Model(entry, layers.UpSampling2D(2, interpolation="bilinear")(x)), rng, (24, 24, 3))


def super_resolution(rng: Rng) -> Served:
    """Convolutions and depth_to_space, clipped to bytes, beside a bicubic resize."""
    holder = tf.Module()
    holder.kernels = [variable(rng, 3, 3, 3, 12, scale=0.2), variable(rng, 3, 3, 12, 12, scale=0.1)]
    holder.slope = tf.Variable(rng.uniform(0, 0.4, 12).astype(np.float32))

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3], tf.float32, name="images")])
    def enlarge(images: tf.Tensor) -> dict[str, tf.Tensor]:
        x = tf.nn.conv2d(images, holder.kernels[0], 1, "SAME")
        x = tf.maximum(x, 0.0) + holder.slope * tf.minimum(x, 0.0)
        fine = tf.nn.depth_to_space(tf.nn.conv2d(x, holder.kernels[1], 1, "SAME"), 2)
        size = 2 * tf.shape(images)[1:3]
        return {
            "images": fine + tf.image.resize(images, size, "bicubic"),
            "back": tf.nn.space_to_depth(fine, 2),
            "edges": tf.image.sobel_edges(images),
        }

    return Served(
        holder,
        {"serving_default": enlarge},
        [{"images": normal(rng, 2, 10, 12, 3, scale=1.0)}, {"images": normal(rng, 1, 5, 4, 3, scale=1.0)}],
    )


def generator(rng: Rng) -> KerasModel:
    """DCGAN: noise to images by transposed convolutions."""
    entry = Input((16,))
    x = layers.Reshape((4, 4, 16))(layers.Dense(256)(entry))
    for width in (12, 6):
        x = layers.LeakyReLU()(layers.BatchNormalization()(layers.Conv2DTranspose(width, 5, 2, padding="same")(x)))
    return _finish(
        tf.keras.Model(entry, layers.Conv2DTranspose(3, 4, 2, padding="same", activation="tanh")(x)), rng, (16,)
    )


def variational(rng: Rng) -> Served:
    """VAE: encoded mean, a drawn code, the decoded image."""
    encode = perturb(
        tf.keras.Sequential(
            [Input((16, 16, 1)), layers.Conv2D(8, 3, 2, activation="relu"), layers.Flatten(), layers.Dense(8)]
        ),
        rng,
    )
    decode = perturb(
        tf.keras.Sequential(
            [
                Input((4,)),
                layers.Dense(64, activation="relu"),
                layers.Reshape((8, 8, 1)),
                layers.Conv2DTranspose(1, 3, 2, padding="same", activation="sigmoid"),
            ]
        ),
        rng,
    )
    holder = tf.Module()
    holder.parts = encode, decode

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 16, 16, 1], tf.float32, name="images"),
            tf.TensorSpec([2], tf.int32, name="seed"),
        ]
    )
    def rebuild(images: tf.Tensor, seed: tf.Tensor) -> dict[str, tf.Tensor]:
        mean, log_variance = tf.split(encode(images), 2, 1)
        code = mean + tf.exp(0.5 * log_variance) * tf.random.stateless_truncated_normal(tf.shape(mean), seed)
        return {"mean": mean, "code": code, "images": decode(code)}

    return Served(
        holder,
        {"serving_default": rebuild},
        [{"images": normal(rng, 2, 16, 16, 1, scale=1.0), "seed": np.array([1, 2], np.int32)}],
    )


def style_transfer(rng: Rng) -> Served:
    """Reflected padding and instance normalisation."""
    holder = tf.Module()
    holder.kernels = [
        variable(rng, 9, 9, 3, 6, scale=0.1),
        variable(rng, 3, 3, 6, 6, scale=0.2),
        variable(rng, 9, 9, 6, 3, scale=0.1),
    ]
    holder.scales = [variable(rng, 6, scale=1.0) for _ in range(2)]

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3], tf.float32, name="images")])
    def paint(images: tf.Tensor) -> dict[str, tf.Tensor]:
        x = images
        for index, kernel in enumerate(holder.kernels):
            pad = kernel.shape[0] // 2
            x = tf.nn.conv2d(tf.pad(x, [[0, 0], [pad, pad], [pad, pad], [0, 0]], "REFLECT"), kernel, 1, "VALID")
            if index < 2:
                mean, variance = tf.nn.moments(x, [1, 2], keepdims=True)
                x = tf.nn.relu(tf.nn.batch_normalization(x, mean, variance, None, holder.scales[index], 1e-5))
        return {"images": 127.5 * (tf.tanh(x) + 1) / 255}

    return Served(holder, {"serving_default": paint}, [{"images": normal(rng, 2, 14, 16, 3, scale=1.0)}])


def spatial_transformer(rng: Rng) -> Served:
    """An affine grid by a small network, sampled bilinearly with gather_nd."""
    holder = tf.Module()
    holder.w = variable(rng, 3, 6, scale=0.2)

    @tf.function(input_signature=[tf.TensorSpec([None, 12, 12, 3], tf.float32, name="images")])
    def transform(images: tf.Tensor) -> dict[str, tf.Tensor]:
        theta = tf.reshape(tf.reduce_mean(images, [1, 2]) @ holder.w + tf.constant([1.0, 0, 0, 0, 1.0, 0]), [-1, 2, 3])
        x, y = tf.meshgrid(tf.linspace(-1.0, 1.0, 12), tf.linspace(-1.0, 1.0, 12))
        points = theta @ tf.reshape(tf.stack([x, y, tf.ones_like(x)]), [1, 3, -1])
        places = tf.clip_by_value((tf.transpose(points, [0, 2, 1]) + 1) * 5.5, 0.0, 10.999)
        low = tf.floor(places)
        share, low = places - low, tf.cast(low, tf.int32)

        def at(dx: int, dy: int) -> tf.Tensor:
            return tf.gather_nd(images, tf.stack([low[..., 1] + dy, low[..., 0] + dx], -1), batch_dims=1)

        sx, sy = share[..., :1], share[..., 1:]
        mixed = (at(0, 0) * (1 - sx) + at(1, 0) * sx) * (1 - sy) + (at(0, 1) * (1 - sx) + at(1, 1) * sx) * sy
        return {"images": tf.reshape(mixed, [-1, 12, 12, 3])}

    return Served(holder, {"serving_default": transform}, [{"images": normal(rng, 2, 12, 12, 3, scale=1.0)}])


def volumes(rng: Rng) -> KerasModel:
    """3-D convolutions, pooling and a transposed one."""
    entry = Input((8, 8, 8, 2))
    x = layers.MaxPooling3D()(layers.Conv3D(6, 3, padding="same", activation="relu")(entry))
    x = layers.BatchNormalization()(x)
    x = layers.AveragePooling3D(2)(layers.Conv3DTranspose(4, 3, 2, padding="same")(x))
    return _finish(tf.keras.Model(entry, layers.Dense(3)(layers.Flatten()(x))), rng, (8, 8, 8, 2))


def squeeze_and_excite(rng: Rng) -> KerasModel:
    """Grouped and separable convolutions with gates of channels, and several activations."""
    entry = Input((16, 16, 8))
    x = layers.Conv2D(16, 3, padding="same", groups=4)(entry)
    x = layers.Activation("swish")(x)
    gate = layers.Dense(16, activation="sigmoid")(
        layers.Dense(4, activation="relu")(layers.GlobalAveragePooling2D(2)(x))
    )
    x = layers.Multiply()([x, layers.Reshape((1, 1, 16))(gate)])
    x = layers.SeparableConv2D(12, 3, depth_multiplier=2, activation="gelu")(x)
    x = layers.PReLU(shared_axes=[1, 2])(x)
    x = layers.GroupNormalization(4)(x)
    return _finish(tf.keras.Model(entry, layers.Dense(5)(layers.GlobalMaxPooling2D()(x))), rng, (16, 16, 8))


def capsules(rng: Rng) -> Served:
    """Routing by agreement in a loop, with einsum."""
    holder = tf.Module()
    holder.w = variable(rng, 12, 4, 5, 6, scale=0.5)

    @tf.function(input_signature=[tf.TensorSpec([None, 12, 5], tf.float32, name="x")])
    def route(x: tf.Tensor) -> dict[str, tf.Tensor]:
        votes = tf.einsum("bni,nkio->bnko", x, holder.w)
        logits = tf.zeros(tf.shape(votes)[:3])
        v = tf.zeros([tf.shape(x)[0], 4, 6])
        for _ in tf.range(3):
            s = tf.einsum("bnk,bnko->bko", tf.nn.softmax(logits), votes)
            norm = tf.reduce_sum(s * s, -1, keepdims=True)
            v = s * norm / (1 + norm) * tf.math.rsqrt(norm + 1e-7)
            logits += tf.einsum("bnko,bko->bnk", votes, v)
        return {"lengths": tf.norm(v, axis=-1), "capsules": v}

    return Served(holder, {"serving_default": route}, [{"x": normal(rng, 3, 12, 5, scale=1.0)}])


def point_cloud(rng: Rng) -> Served:
    """Neighbours by distance, edge features, and a maximum over neighbours."""
    holder = tf.Module()
    holder.w, holder.head = variable(rng, 6, 16), variable(rng, 16, 4)

    @tf.function(input_signature=[tf.TensorSpec([None, None, 3], tf.float32, name="points")])
    def classify(points: tf.Tensor) -> dict[str, tf.Tensor]:
        squares = tf.reduce_sum(points**2, -1)
        distances = squares[:, :, None] - 2 * tf.matmul(points, points, transpose_b=True) + squares[:, None]
        neighbours = tf.math.top_k(-distances, 4).indices
        others = tf.gather(points, neighbours, batch_dims=1)
        middle = tf.broadcast_to(points[:, :, None], tf.shape(others))
        edges = tf.nn.leaky_relu(tf.concat([middle, others - middle], -1) @ holder.w)
        return {"logits": tf.reduce_max(edges, [1, 2]) @ holder.head, "neighbours": neighbours}

    return Served(holder, {"serving_default": classify}, [{"points": normal(rng, 2, n, 3, scale=1.0)} for n in (12, 6)])


def optical_flow(rng: Rng) -> Served:
    """Correlation of two frames over shifts, with extracted patches."""
    holder = tf.Module()
    holder.kernel = variable(rng, 3, 3, 9, 2, scale=0.3)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 10, 10, 4], tf.float32, name="first"),
            tf.TensorSpec([None, 10, 10, 4], tf.float32, name="second"),
        ]
    )
    def match(first: tf.Tensor, second: tf.Tensor) -> dict[str, tf.Tensor]:
        patches = tf.image.extract_patches(second, [1, 3, 3, 1], [1, 1, 1, 1], [1, 1, 1, 1], "SAME")
        cost = tf.reduce_mean(first[..., None, :] * tf.reshape(patches, [-1, 10, 10, 9, 4]), -1)
        flow = tf.nn.conv2d(cost, holder.kernel, 1, "SAME")
        return {
            "cost": cost,
            "flow": flow,
            "eroded": tf.nn.erosion2d(cost, tf.zeros([3, 3, 9]), [1, 1, 1, 1], "SAME", "NHWC", [1, 1, 1, 1]),
        }

    return Served(
        holder,
        {"serving_default": match},
        [{"first": normal(rng, 2, 10, 10, 4, scale=1.0), "second": normal(rng, 2, 10, 10, 4, scale=1.0)}],
    )


def mixer(rng: Rng) -> KerasModel:
    """Layers along patches and along channels in turn."""
    entry = Input((16, 16, 3))
    x = layers.Reshape((16, 12))(layers.Conv2D(12, 4, 4)(entry))
    for _ in range(2):
        y = layers.Permute((2, 1))(layers.LayerNormalization()(x))
        y = layers.Permute((2, 1))(layers.Dense(16)(layers.Dense(24, activation="gelu")(y)))
        x = layers.Add()([x, y])
        x = layers.Add()([x, layers.Dense(12)(layers.Dense(24, activation="gelu")(layers.LayerNormalization()(x)))])
    return _finish(tf.keras.Model(entry, layers.Dense(5)(layers.GlobalAveragePooling1D()(x))), rng, (16, 16, 3))


def siamese(rng: Rng) -> KerasModel:
    """One network on two images, and the cosine of their embeddings."""
    body = tf.keras.Sequential(
        [
            Input((16, 16, 3)),
            layers.Conv2D(8, 5, 2, activation="relu"),
            layers.AveragePooling2D(2),
            layers.Flatten(),
            layers.Dense(10),
        ]
    )
    first, second = Input((16, 16, 3), name="first"), Input((16, 16, 3), name="second")
    cosine = layers.Dot(1, normalize=True)([body(first), body(second)])
    model = perturb(tf.keras.Model({"first": first, "second": second}, cosine), rng)
    return KerasModel(
        model, [{"first": normal(rng, 4, 16, 16, 3, scale=1.0), "second": normal(rng, 4, 16, 16, 3, scale=1.0)}]
    )


def local_weights(rng: Rng) -> KerasModel:
    """Keras 2 alone: convolutions whose weights differ by place."""
    model = tf.keras.Sequential(
        [Input((8, 8, 2)), layers.LocallyConnected2D(4, 3, activation="relu"), layers.Flatten(), layers.Dense(3)]
    )
    return _finish(model, rng, (8, 8, 2))


def adjusted_images(rng: Rng) -> Served:
    """tf.image: colours, contrast, crops, rotations, statistics."""
    holder, image = tf.Module(), tf.image

    @tf.function(input_signature=[tf.TensorSpec([None, 12, 12, 3], tf.float32, name="images")])
    def adjust(images: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            "hsv": image.rgb_to_hsv(images),
            "hue": image.adjust_hue(images, 0.2),
            "yuv": image.rgb_to_yuv(images),
            "saturation": image.adjust_saturation(images, 1.7),
            "contrast": image.adjust_contrast(images, 1.5),
            "standard": image.per_image_standardization(images),
            "turned": image.rot90(images),
            "central": image.central_crop(images, 0.5),
            "padded": image.resize_with_pad(images, 9, 16),
            "total": image.total_variation(images),
            "gamma": image.adjust_gamma(images, 0.6),
            "ssim": image.ssim(images, image.flip_left_right(images), 1.0),
        }

    return Served(
        holder, {"serving_default": adjust}, [{"images": rng.uniform(0, 1, (2, 12, 12, 3)).astype(np.float32)}]
    )

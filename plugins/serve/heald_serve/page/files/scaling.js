// The numbers of pixels: from 0..255 to what a model was trained on.

const MEAN = [123.68, 116.779, 103.939];
const TORCH_MEAN = [0.485, 0.456, 0.406];
const TORCH_DEVIATION = [0.229, 0.224, 0.225];

export const SCALINGS = {
  unit: { title: "0 to 1", apply: (byte) => byte / 255 },
  signed: { title: "-1 to 1", apply: (byte) => byte / 127.5 - 1 },
  bytes: { title: "0 to 255", apply: (byte) => byte },
  torch: { title: "ImageNet, as PyTorch", colours: true,
    apply: (byte, channel) => (byte / 255 - TORCH_MEAN[channel]) / TORCH_DEVIATION[channel] },
  caffe: { title: "ImageNet, BGR less the mean", colours: true, swaps: true,
    apply: (byte, channel) => byte - MEAN[channel] },
};

export function scalingChoices(channels) {
  return Object.entries(SCALINGS).filter(([, scaling]) => channels === 3 || !scaling.colours)
    .map(([name, scaling]) => [name, scaling.title]);
}

// The pixels of an ImageData, in the order row, column, channel. One channel is the brightness.
export function scaledPixels(data, channels, scaling) {
  const { apply, swaps } = SCALINGS[scaling];
  const values = new Array((data.length / 4) * channels);
  for (let at = 0, to = 0; at < data.length; at += 4) {
    if (channels === 1) {
      values[to] = rounded(apply(Math.round(0.299 * data[at] + 0.587 * data[at + 1] + 0.114 * data[at + 2]), 0));
      to += 1;
      continue;
    }
    for (let channel = 0; channel < channels; channel += 1, to += 1) {
      const source = swaps ? 2 - channel : channel;
      values[to] = rounded(apply(data[at + source], source));
    }
  }
  return values;
}

// Five digits hold a pixel of eight bits, and keep the request short.
export function rounded(number) {
  return Math.round(number * 1e5) / 1e5;
}

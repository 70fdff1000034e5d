"""The ops of TensorFlow Decision Forests (TF-DF), with kernels for the CPU over the library ydf.

A model consists of files in a folder. `model_files` reads them, through `blob_sequence`. `columns` and `tree_check`
check all facts that ydf relies on, and make a model of the same answers that ydf can be handed. `forest` hands it over
and asks for predictions; `leaf_sums` makes logits that ydf does not give. `feature_banks` turns the inputs of an op
into columns. `model_slot` is the object behind the handle of a model, `inference_kernels` has the kernels, `ops` the
signatures.
"""

"""Random numbers: known answers of Philox, and sequences that go on from run to run."""

from concurrent.futures import ThreadPoolExecutor

import heald
import numpy as np
import pytest
from builders.graphs import const, graph
from harness.run_op import run_op
from heald.errors import InvalidArgument
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import ValueInfo, info
from heald_cpu.kernels.float_functions import log, sin_cos
from heald_cpu.philox import Sequence, blocks, from_seed
from heald_tf_ops.metadata import RULES

PI = 0x0370734413198A2E85A308D3243F6A88, 0x299F31D0A4093822  # counter, key


def at(key, counter, *steps):
    return blocks(key, counter, np.array(steps, np.uint64)).tolist()


def stateless(op, shape, seed=(1, 2), *bounds, dtype=np.float32):
    inputs = [np.array(shape, np.int32), np.array(seed, np.int64), *(np.array(bound, dtype) for bound in bounds)]
    return run_op(op, inputs, {"dtype": dtypes.of_numpy(np.dtype(dtype))})[0]


def session(op="RandomUniform", seeds=(1, 2), names=("a",), **attrs):
    attrs = {"dtype": dtypes.float32, "T": dtypes.int32, "seed": seeds[0], "seed2": seeds[1]} | attrs
    shape = Node("shape", "Placeholder", attrs={"dtype": dtypes.int32})
    return heald.Session(Graph([shape, *(Node(name, op, ["shape"], attrs=attrs) for name in names)]), device="CPU:0")


def draw(session, count, name="a"):
    return session.run(name, {"shape": np.array([count], np.int32)}).tolist()


@pytest.mark.parametrize(("counter", "key", "words"), [
    (0, 0, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    (2**128 - 1, 2**64 - 1, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (*PI, [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
])
def test_philox_gives_the_known_answers_of_its_authors(counter, key, words):
    assert at(key, counter, 0) == [words]


@pytest.mark.parametrize("counter", [2**64 - 2, 2**128 - 2, PI[0]])
def test_a_step_is_added_to_all_128_bits_of_the_counter(counter):
    assert at(7, counter, 0, 1, 2, 3) == [at(7, (counter + i) % 2**128, 0)[0] for i in range(4)]


def test_float32_functions_round_their_values_rightly_but_for_some():
    """The float32 results are nearly always float64's, rounded. Golden cases have the exceptions."""
    x = np.random.default_rng(0).random(10000, np.float32) + np.float32(1e-7)
    angle = x * np.float32(6.28)
    sine, cosine = sin_cos(angle)
    for got, function, of in ((log(x), np.log, x), (sine, np.sin, angle), (cosine, np.cos, angle)):
        want = function(of.astype(np.float64))
        assert (got != want.astype(np.float32)).mean() < 0.02
        assert (np.abs(got - want) <= np.spacing(np.abs(want).astype(np.float32))).all()


def test_a_sequence_gives_nobody_the_same_blocks():
    sequence = Sequence(1, -2)
    with ThreadPoolExecutor(4) as pool:
        starts = list(pool.map(lambda _: sequence.reserve(3), range(200)))
    first = (2**64 - 2) << 64
    assert sorted(starts) == [(1, first + 3 * i) for i in range(200)]


def test_two_zero_seeds_are_no_seed():
    assert Sequence(0, 0).reserve(1) != Sequence(0, 0).reserve(1)
    assert Sequence(0, 3).reserve(1) == Sequence(0, 3).reserve(1)


def test_a_node_draws_what_tensorflow_draws_in_each_run_of_a_session():
    with session() as s:
        for count, want in ((3, [0.40639675, 0.8575996, 0.05539584]), (3, [0.16840732, 0.88910615, 0.53549695])):
            np.testing.assert_allclose(draw(s, count), want, rtol=1e-6)


def test_a_node_goes_on_from_run_to_run_whatever_is_drawn():
    with session() as one, session() as other:
        first, second = draw(one, 3), draw(one, 3)
        assert first != second
        assert draw(other, 3) == first
        assert draw(other, 3) == second
        assert draw(one, 1) == draw(other, 5)[:1]
        assert draw(one, 4) != draw(other, 4)  # five numbers reserve more than one


def test_each_node_has_a_sequence_of_its_own_that_all_fetches_share():
    with session(names=("a", "b")) as s:
        shape = {"shape": np.array([3], np.int32)}
        a, b = s.run(["a", "b"], shape)
        np.testing.assert_array_equal(a, b)
        second = draw(s, 3, "a")
        assert second != a.tolist()
        assert draw(s, 3, "b") == second


def test_sessions_without_seeds_differ():
    with session(seeds=(0, 0)) as one, session(seeds=(0, 0)) as other:
        assert draw(one, 8) != draw(other, 8)


def test_threads_draw_what_one_thread_would_have_drawn():
    with session() as one, session() as other:
        with ThreadPoolExecutor(4) as pool:
            draws = list(pool.map(lambda _: tuple(draw(one, 5)), range(40)))
        assert sorted(draws) == sorted(tuple(draw(other, 5)) for _ in range(40))


@pytest.mark.parametrize("op", ["StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_fewer_numbers_are_the_first_of_more(op, dtype):
    many = stateless(op, [70001], dtype=dtype)
    np.testing.assert_array_equal(stateless(op, [3, 5], dtype=dtype).reshape(-1), many[:15])
    assert abs(many.astype(np.float64).mean() - 0.5 * (op == "StatelessRandomUniform")) < 0.02


def test_numbers_keep_to_the_bounds_of_their_distribution():
    uniform, cut = stateless("StatelessRandomUniform", [50000]), stateless("StatelessTruncatedNormal", [50000])
    assert 0 <= uniform.min() < 0.001
    assert 0.999 < uniform.max() < 1
    assert 1.99 < np.abs(cut).max() < 2
    assert abs(stateless("StatelessRandomNormal", [50000]).std() - 1) < 0.01


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_cover_a_span_that_is_wider_than_their_sign_allows(dtype):
    limits = np.iinfo(dtype)
    drawn = stateless("StatelessRandomUniformInt", [1000], (1, 2), limits.min, limits.max, dtype=dtype)
    assert drawn.min() < limits.min // 2
    assert drawn.max() > limits.max // 2
    assert set(stateless("StatelessRandomUniformInt", [100], (1, 2), -1, 2, dtype=dtype).tolist()) == {-1, 0, 1}
    with pytest.raises(InvalidArgument, match="minval < maxval"):
        stateless("StatelessRandomUniformInt", [1], (1, 2), 3, 3, dtype=dtype)
    assert stateless("StatelessRandomUniformInt", [0], (1, 2), 3, 3, dtype=dtype).size == 0


def test_key_and_counter_made_of_a_seed_give_what_the_seed_gives():
    seed = np.array([5, -6])
    key, counter, alg = run_op("StatelessRandomGetKeyCounterAlg", [seed], {"Tseed": dtypes.int64})
    assert (int(key[0]), int(counter[1]) << 64) == from_seed(seed)
    inputs = [np.array([9]), key, counter, alg]
    got = run_op("StatelessRandomUniformV2", inputs, {"dtype": dtypes.float32, "Tshape": dtypes.int64})[0]
    np.testing.assert_array_equal(got, stateless("StatelessRandomUniform", [9], seed))


@pytest.mark.parametrize(("alg", "counter"), [(0, 2), (2, 2), (1, 1)])
def test_algorithms_and_counters_that_philox_is_not(alg, counter):
    inputs = [np.array([9]), np.zeros(1, np.uint64), np.zeros(counter, np.uint64), np.array(alg, np.int32)]
    with pytest.raises(InvalidArgument):
        run_op("StatelessRandomUniformV2", inputs, {"dtype": dtypes.float32, "Tshape": dtypes.int64})


@pytest.mark.parametrize(("shape", "seed"), [([-1], (1, 2)), (3, (1, 2)), ([2], (1, 2, 3)), ([2], [(1, 2)])])
def test_shapes_and_seeds_that_are_none(shape, seed):
    with pytest.raises(InvalidArgument):
        stateless("StatelessRandomUniform", shape, seed)


def test_samples_are_of_classes_that_have_a_probability():
    logits = np.array([[0, -np.inf, 0, np.nan], [-np.inf, 1, -np.inf, -np.inf]], np.float32)
    got = run_op("StatelessMultinomial", [logits, np.array(500, np.int32), np.array([1, 2])],
                 {"T": dtypes.float32, "Tseed": dtypes.int64, "output_dtype": dtypes.int32})[0]
    assert set(got[0].tolist()) == {0, 2}
    assert set(got[1].tolist()) == {1}


@pytest.mark.parametrize("shape", [(0,), (1,), (9,), (40, 3), (2, 0)])
def test_a_shuffle_moves_rows_as_a_whole(shape):
    x = np.arange(np.prod(shape)).reshape(shape)
    got = run_op("RandomShuffle", [x], {"T": dtypes.int64, "seed": 1, "seed2": 2})[0]
    assert sorted(got.tolist()) == x.tolist()
    assert len(x) < 3 or not np.array_equal(got, x)


def test_a_shape_that_is_known_in_part_is_the_outputs():
    partly = ValueInfo(info(dtypes.int32, (2,)).meta, dims=(None, 3))
    assert RULES["RandomUniform"].function({"dtype": dtypes.float32}, partly).shape == (None, 3)
    unknown = info(dtypes.int32, None)
    assert RULES["RandomUniform"].function({"dtype": dtypes.float32}, unknown).shape is None


def test_sessions_of_equal_seeds_draw_equal_streams_run_by_run():
    shape = const("shape", [3], np.int32)
    drawn = Node("r", "RandomUniform", ("shape",), attrs={"T": dtypes.int32, "dtype": dtypes.float32, "seed": 3,
                                                          "seed2": 5})
    with heald.Session(graph(shape, drawn)) as one, heald.Session(graph(shape, drawn)) as other:
        streams = [[session.run("r").tolist() for _ in range(3)] for session in (one, other)]
    assert streams[0] == streams[1]
    assert len({tuple(draw) for draw in streams[0]}) == 3

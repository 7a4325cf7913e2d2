import numpy as np
import pytest

from robot_rl.errors import SpecError
from robot_rl.spec import ArraySpec, to_space, validate_dict

FORCE = ArraySpec((3,), unit="N", low=-50.0, high=50.0)
FRAME = ArraySpec((4, 4, 3), "uint8", low=0, high=255)
SPECS = {"state/force": FORCE, "images/wrist": FRAME}


def values(**changes):
    return {"state/force": np.zeros(3), "images/wrist": np.zeros((4, 4, 3), np.uint8)} | changes


def test_a_valid_value_comes_back_in_the_stated_dtype():
    result = FORCE.validate([1, 2, 3], "force")
    assert result.dtype == np.float32
    assert result.tolist() == [1.0, 2.0, 3.0]
    assert FRAME.validate(np.full((4, 4, 3), 255, np.uint8), "frame").dtype == np.uint8


@pytest.mark.parametrize(
    ("spec", "value", "complaint"),
    [
        (FORCE, np.zeros(4), r"shape \(4,\), expected \(3,\)"),
        (FORCE, np.array([0.0, np.nan, 0.0]), "NaN"),
        (FORCE, np.array([0.0, np.inf, 0.0]), "infinity"),
        (FORCE, np.array([0.0, 51.0, 0.0]), r"\[0, 51\], allowed \[-50, 50\] N"),
        (FORCE, np.array([-50.1, 0.0, 0.0]), "allowed"),
        (FORCE, np.array(["a", "b", "c"]), "dtype"),
        (FORCE, np.zeros(3, complex), "dtype"),
        (FRAME, np.zeros((4, 4, 3)), "float64 cannot become uint8"),
        (ArraySpec((1,), "uint8", low=0, high=9), np.array([10], np.uint8), "allowed"),
        (ArraySpec((1,), "int64", low=0), np.array([-1]), "allowed"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_name_and_the_facts(spec, value, complaint):
    with pytest.raises(SpecError, match=complaint) as caught:
        spec.validate(value, "gauge")
    assert str(caught.value).startswith("gauge: ")


def test_a_validated_float_does_not_alias_the_sensor():
    sensor = np.zeros(3)
    result = FORCE.validate(sensor, "force")
    sensor[:] = 7.0
    assert result.tolist() == [0.0, 0.0, 0.0]


def test_missing_and_unknown_keys_are_both_named():
    with pytest.raises(SpecError, match=r"missing \['state/force'\]") as caught:
        validate_dict(SPECS, {"images/wrist": values()["images/wrist"], "state/torque": np.zeros(3)}, "observation")
    assert "state/torque" in str(caught.value)
    with pytest.raises(SpecError, match=r"observation\[state/force\]: shape"):
        validate_dict(SPECS, values(**{"state/force": np.zeros(2)}), "observation")


def test_what_is_validated_lies_in_the_space():
    space = to_space(SPECS)
    assert space.contains(validate_dict(SPECS, values(), "observation"))
    assert list(space.spaces) == sorted(SPECS)
    assert not space.contains(values(**{"state/force": np.full(3, 60.0, np.float32)}))


def test_two_specs_of_the_same_facts_are_equal_even_when_one_was_used():
    used = ArraySpec((3,), unit="N", low=-50.0, high=50.0)
    used.validate(np.zeros(3), "force")
    assert used == ArraySpec((3,), unit="N", low=-50.0, high=50.0)
    assert hash(used) == hash(FORCE)

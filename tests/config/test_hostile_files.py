"""Files and overrides that are broken, huge or nested without end are refused in one short line."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from robot_rl.config.load import config_to_dict, load_config
from robot_rl.errors import ConfigError


def refusal(path, text, overrides=()):
    path.write_text(text, encoding="utf-8")
    begun = time.process_time()
    with pytest.raises(ConfigError) as error:
        load_config(path, overrides)
    assert time.process_time() - begun < 5
    return str(error.value)


def alias_bomb(opening, item, closing, levels=30):
    """YAML of a few hundred characters that stands for 5^levels values."""
    lines = [f"a0: &a0 {opening}{item.format(key='x', value='1')}{closing}"]
    for level in range(1, levels):
        parts = ", ".join(item.format(key=f"k{index}", value=f"*a{level - 1}") for index in range(5))
        lines.append(f"a{level}: &a{level} {opening}{parts}{closing}")
    return "\n".join(lines)


OVERSIZED = {
    "bomb of lists": alias_bomb("[", "{value}", "]"),
    "shallow bomb of lists": alias_bomb("[", "{value}", "]", levels=9),
    "bomb of sections": alias_bomb("{{", "{key}: {value}", "}}").replace("{{", "{").replace("}}", "}"),
    "lists in lists": "seed: " + "[" * 2000 + "]" * 2000,
    "sections in sections": "{a: " * 2000 + "1" + "}" * 2000,
    "lines indented ever deeper": "".join(" " * level + "a:\n" for level in range(800)),
    "section that holds itself": "sac: &a {b: *a}",
    "list that holds itself": "seed: &a [*a]",
    "long list": "sac: {hidden_sizes: [" + "8, " * 10_000 + "8]}",
}


@pytest.mark.parametrize("text", OVERSIZED.values(), ids=OVERSIZED)
def test_an_oversized_file_is_refused_in_one_line(text, tmp_path):
    message = refusal(tmp_path / "config.yaml", text)
    assert len(message.splitlines()) == 1
    assert len(message) < 400
    assert "nested deeper than 20 levels, or holds more than 10000 values" in message
    assert str(tmp_path / "config.yaml") in message


def test_oversized_overrides_are_refused_in_one_short_line():
    for override in ("a." * 3000 + "b=1", "seed=" + "[" * 2000, "seed=" + "[" * 30 + "]" * 30):
        with pytest.raises(ConfigError, match="nested deeper than 20 levels") as error:
            load_config(None, [override])
        assert len(str(error.value).splitlines()) == 1
        assert len(str(error.value)) < 400


def test_anchors_within_reason_and_merge_keys_still_serve(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("sac: {hidden_sizes: &sizes [32, 16]}\nreplay: {history: *sizes}\n<<: {seed: 4}\n")
    config = load_config(path)
    assert config.sac.hidden_sizes == config.replay.history == (32, 16)
    assert config.seed == 4


@pytest.mark.parametrize("text", ["2001-13-45", "0x_", "9" * 5000])
def test_a_malformed_number_or_date_is_refused_in_one_line(text, tmp_path):
    message = refusal(tmp_path / "config.yaml", f"seed: {text}")
    assert len(message.splitlines()) == 1
    assert len(message) < 400
    assert "malformed number or date" in message


@settings(max_examples=15, deadline=None)
@given(length=st.integers(250, 2000))
def test_a_long_wrong_value_is_cut_in_the_message(length):
    with pytest.raises(ConfigError) as error:
        load_config(None, [f"evaluation.seed={'x' * length}"])
    assert str(error.value).startswith("evaluation.seed (command line): 'xxx")
    assert str(error.value).endswith("valid: int >= 0")
    assert len(str(error.value)) < 320


@settings(max_examples=60, deadline=None)
@given(text=st.text(st.sampled_from("sed:ac{}[]&*!<>|-?#,'\"%@ \n\t0x1.e_~"), max_size=30))
@example(text="<<: *a")
@example(text="? {a: 1}\n: 2")
@example(text="!!timestamp x")
@example(text="seed: !!int ''")
@example(text="seed: !!float ''")
@example(text="seed: !!bool maybe")
def test_any_text_is_a_configuration_or_a_configuration_error(text, tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "config.yaml"
    path.write_text(text, encoding="utf-8")
    for arguments in ((path, ()), (None, [text]), (None, [f"sac={text}"]), (None, [f"seed={text}"])):
        try:
            config = load_config(*arguments)
        except ConfigError as error:
            assert str(error)
        else:
            assert set(config_to_dict(config)) >= {"task", "sac"}

"""A progress head shapes a training by the verdict of its report, like whatever else rewards one."""

import pytest
from random_heads import progress_head

from robot_rl.config.reward import RewardConfig, ShapingConfig
from robot_rl.errors import UncertifiedError
from robot_rl.reward.heads.progress_head import read_progress_head_file
from robot_rl.reward.potential.shaping_certificate import USE, certify_head, check_shaping
from robot_rl.reward.validation.certificate import certificate_path
from robot_rl.reward.validation.gates import ConditionResult, Fitness, GateResult
from robot_rl.run.make_reward import RewardSetup


def verdict(fitness):
    return GateResult(USE, (ConditionResult(fitness, "beyond_a_clock: 0.5"),))


@pytest.fixture
def head(tmp_path):
    progress_head().write(tmp_path / "head.pt")
    return read_progress_head_file(tmp_path / "head.pt")


def certified(head, fitness):
    told = certify_head(head.path, head.head.revision, verdict(fitness), 9)
    assert str(certificate_path(head.path)) in told


def test_without_a_report_it_is_refused_with_the_cure(head):
    with pytest.raises(UncertifiedError, match=r"no report.*robot-rl label report.*reward\.allow_unfit=true"):
        RewardSetup.from_config(RewardConfig(shaping=ShapingConfig(head=str(head.path))))
    assert check_shaping(head, allowed=True).fitness is Fitness.NOT_SHOWN


@pytest.mark.parametrize("fitness", list(Fitness))
def test_the_verdict_is_the_one_of_the_report_and_only_unfit_heads_need_who_takes_the_risk(head, fitness):
    certified(head, fitness)
    config = RewardConfig(shaping=ShapingConfig(head=str(head.path)))
    assert check_shaping(head, allowed=True) == verdict(fitness)
    if fitness is Fitness.UNFIT:
        with pytest.raises(UncertifiedError, match=r"unfit beyond_a_clock: 0\.5"):
            RewardSetup.from_config(config)
    else:
        assert RewardSetup.from_config(config).head.verdict == verdict(fitness)


def test_a_report_of_another_head_does_not_count(head):
    told = certify_head(head.path, "sha256-of-another", verdict(Fitness.FIT), 9)
    assert "another head" in told
    assert not certificate_path(head.path).exists()
    assert "cannot be read" in certify_head(head.path.with_name("gone.pt"), "x", verdict(Fitness.FIT), 9)
    certified(head, Fitness.FIT)
    progress_head(seed=1).write(head.path)
    with pytest.raises(UncertifiedError, match="another progress head"):
        check_shaping(read_progress_head_file(head.path))

"""What a staged curriculum reports: a report per stage, a change of stage, an explanation.

Made by `staged`; read by people, by the logs of `envs` and by whatever keeps runs.
"""

from dataclasses import dataclass

from stepladder.curricula.reporting.explanation import Change, Explanation, JsonDataclass


@dataclass(frozen=True, kw_only=True)
class StageChange(Change):
    """One change of stage, with all numbers that decided it."""

    from_stage: str
    to_stage: str

    rules: tuple[str, ...]
    """Which rules held: standard, early, trend; or demotion; or manual."""

    success: float
    judged_success: float
    """Success, or its lower bound if a confidence bound is in use."""

    episodes: int
    """Episodes of the old stage since it was entered."""

    needs: dict[str, tuple[float, int]]
    """For each rule that held, the success and the episodes it asked for."""

    threshold: float
    """The old stage's own threshold, whichever rule decided."""

    min_episodes: int
    """The old stage's own minimum, whichever rule decided."""

    trend: float
    mixing_ratio: float
    """Share of earlier tasks in the old stage, at the end of it."""

    @property
    def kind(self) -> str:
        """What happened: stage_demoted, stage_set or stage_advanced."""
        rule = self.rules[0] if self.rules else ""
        return {"demotion": "stage_demoted", "manual": "stage_set"}.get(rule, "stage_advanced")

    @property
    def headline(self) -> str:
        """Where it has led: advanced, fell back or moved to another stage."""
        verbs = {"stage_demoted": "fell back", "stage_set": "moved"}
        return f"{verbs.get(self.kind, 'advanced')} to: {self.to_stage}"

    @property
    def reason(self) -> str:
        """The rules that held, in words."""
        return " + ".join(self.rules)

    def __str__(self) -> str:
        asked = "; ".join(
            f"{rule} asks for success {'below' if rule == 'demotion' else 'of'} {success:.2f} "
            f"after {episodes} episodes"
            for rule, (success, episodes) in self.needs.items()
        )
        bound = ""
        if self.judged_success != self.success:
            bound = f" (lower bound {self.judged_success:.2f})"
        return (
            f"{self.from_stage} -> {self.to_stage} at episode {self.episode} by {self.reason}: "
            f"success {self.success:.2f}{bound}, {self.episodes} episodes, trend {self.trend:+.2f}"
            + (f" ({asked})" if asked else "")
        )


@dataclass(frozen=True, kw_only=True)
class StageReport(JsonDataclass):
    """Where one stage stands."""

    stage: str
    status: str
    """completed, current or locked."""

    success_rate: float
    """Mean over the window; 0 without results."""

    judged_success: float
    """What the rules compare: the rate, or its lower bound."""

    passed_at: float | None
    """Success when the stage was last passed; None if it never was."""

    episodes: int
    """Episodes since entry."""

    lifetime_episodes: int
    recent_episodes: int
    """Results in the window."""

    can_advance: bool
    can_early_advance: bool
    trend_bonus: bool
    advancement_threshold: float
    min_episodes: int
    """Episodes needed by the standard rule, the number of envs included."""

    trend: float
    adaptive_mixing_ratio: float
    groups: dict[str, tuple[int, float]]
    """Per sub-group: episodes and success rate over all of them."""

    def __str__(self) -> str:
        rate = f"{self.success_rate:.2f}" if self.recent_episodes else "none"
        if self.status == "completed":
            passed = "left by hand" if self.passed_at is None else f"passed at {self.passed_at:.2f}"
            now = f"{passed}; now {rate}, {self.lifetime_episodes} episodes in all"
        else:
            now = (
                f"success {rate} (needs {self.advancement_threshold:.2f}), episodes "
                f"{self.episodes} (needs {self.min_episodes}), {self.lifetime_episodes} in all"
            )
        return f"{self.stage:<16} {self.status:<10} {now}"

    def missing(self) -> list[str]:
        """Say what the standard rule still lacks."""
        lacking: list[str] = []
        if self.judged_success < self.advancement_threshold:
            bound = "" if self.judged_success == self.success_rate else "lower bound of "
            lacking.append(
                f"{bound}success {self.judged_success:.2f} < {self.advancement_threshold:.2f}"
            )
        if self.episodes < self.min_episodes:
            lacking.append(f"{self.min_episodes - self.episodes} more episodes needed")
        return lacking


@dataclass(frozen=True, kw_only=True)
class StagedExplanation(Explanation):
    """Why a staged curriculum stands where it stands."""

    stage: str
    stage_index: int
    num_stages: int
    is_last: bool
    stages: tuple[StageReport, ...]
    last_change: StageChange | None
    episodes_to_next_check: int
    standard_rule: bool
    """Whether the standard rule is switched on."""

    demotion_below: float | None
    """Success below which the stage is demoted; None if that cannot happen."""

    demotion_episodes: int | None
    """Episodes since entry that a demotion needs."""

    @property
    def current(self) -> StageReport:
        """The report of the current stage."""
        return self.stages[self.stage_index]

    def verdict(self) -> str:
        """Say in one sentence why the stage has not been left."""
        now = self.current
        if self.is_last:
            return f"Stage {self.stage!r} is the last one; there is nothing to advance to."
        if now.can_advance:
            return (
                f"Stage {self.stage!r} is ready; it is left at the next check, in "
                f"{self.episodes_to_next_check} episodes."
            )
        lacking = now.missing()
        if not self.standard_rule:
            lacking.append("the standard rule is switched off")
        lacking.append(f"trend {now.trend:+.2f}")
        return f"Stage {self.stage!r} has not advanced: {'; '.join(lacking)}."

    def lines(self) -> list[str]:
        """Return the text, line by line."""
        text = [
            *super().lines(),
            f"Stage {self.stage_index + 1} of {self.num_stages}: {self.stage!r}. {self.verdict()}",
            f"Share of earlier tasks: {self.current.adaptive_mixing_ratio:.0%}"
            + (" (not used: there is no earlier stage)." if self.stage_index == 0 else "."),
        ]
        if self.demotion_below is not None:
            text.append(
                f"Demoted if success falls below {self.demotion_below:.2f} after "
                f"{self.demotion_episodes} episodes."
            )
        if self.last_change is not None:
            text.append(f"Last change: {self.last_change}.")
        text += [f"  {report}" for report in self.stages]
        return text

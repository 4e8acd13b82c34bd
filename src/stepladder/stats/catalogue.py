"""The rows of the table of metrics: name, reduction, meaning, formula.

Data for `metrics`, in the order of docs/metrics.md. In formulas, x are the values meant, n is
their number, and i counts from 1.
"""

from typing import TypeAlias

Row: TypeAlias = tuple[str, str, str, str]
"""Name, reduction, meaning, formula."""

ROLLOUT: tuple[Row, ...] = (
    (
        "metric/agent_step",
        "last",
        "env steps so far, those of every env counted; the x-axis of all plots",
        "sum over envs of their steps",
    ),
    ("metric/epoch", "last", "epochs so far", ""),
    ("metric/total_time", "last", "seconds since the run began", ""),
    (
        "overview/steps_per_second",
        "last",
        "env steps per second of all envs together",
        "agent_step / total_time, unless measured over a shorter time",
    ),
    (
        "overview/reward",
        "mean",
        "reward as the envs report it: per episode, or per play of the simulator",
        "mean of the first of reward, episode/r, task_dependency/reward in the infos",
    ),
    ("losses/*", "mean", "a loss of the learner", "mean over its updates"),
    ("experience/*", "mean", "what the learner's memory says about itself", ""),
    (
        "env_info/curriculum_success",
        "mean",
        "success of the episodes that ended, in [0, 1]; those without a signal left out",
        "sum(success) / episodes",
    ),
    (
        "env_info/is_success",
        "mean",
        "what envs report as `is_success` in their infos, 1 for true",
        "",
    ),
    (
        "env_info/worker_died",
        "sum",
        "episodes that were cut off because the worker of their env had died",
        "",
    ),
    ("env_info/reward", "mean", "what envs report as `reward` in their infos", ""),
    ("env_episode/r", "mean", "return of an episode, from Gymnasium's episode statistics", ""),
    ("env_episode/l", "mean", "length of an episode in env steps, from the same", ""),
    ("env_episode/t", "mean", "seconds since the env or the episode began, from the same", ""),
    (
        "env_undeclared/other",
        "mean",
        "everything undeclared for which there was no name left (see below)",
        "",
    ),
)

_SAMPLES = "x = episodes of each label so far, n = labels of the source"

CURRICULUM: tuple[Row, ...] = (
    (
        "overview/sampling_entropy_normalized",
        "last",
        f"evenness over labels, 1 when all are alike; {_SAMPLES}",
        "-sum(p·ln p) / ln n, p = x / sum(x); 1 without episodes or with one label",
    ),
    (
        "overview/sampling_gini_coefficient",
        "last",
        f"unevenness over labels, 0 when all are alike; {_SAMPLES}",
        "2·sum(i·x_i) / (n·sum(x)) - (n+1)/n, x ascending; 0 without episodes",
    ),
    (
        "overview/sampling_coefficient_of_variation",
        "last",
        f"spread over labels; {_SAMPLES}",
        "std(x) / mean(x), std of a population; 0 without episodes",
    ),
    (
        "overview/sampling_max_min_ratio",
        "last",
        f"most to least played label; {_SAMPLES}",
        "max(x) / min(x), a label not yet played counted as played once",
    ),
    (
        "env_curriculum_stats/sampling_gini",
        "last",
        "the same number as overview/sampling_gini_coefficient",
        "Gini of the episodes of each label so far",
    ),
    (
        "env_curriculum_stats/pool_occupancy_gini",
        "last",
        "unevenness over active tasks",
        "Gini of the episodes of each active task since it came in",
    ),
    (
        "env_curriculum_stats/pool_lp_gini",
        "last",
        "unevenness of the scores of active tasks",
        "Gini of max(score, 0)",
    ),
    (
        "env_curriculum_stats/mean_lp_score",
        "last",
        "mean of the method's own scores (`curriculum.scores()`)",
        "sum(score) / active tasks",
    ),
    *(
        (
            f"env_curriculum_stats/pool_lp_score_p{point}",
            "last",
            f"{point} % of active tasks score less",
            f"percentile {point} of score, linear between neighbours",
        )
        for point in (25, 50, 75, 90, 95)
    ),
    (
        "env_curriculum_stats/per_label_lp_scores/*",
        "last",
        "mean score of a label; only labels with an active task",
        "sum(score) / active tasks of the label",
    ),
    (
        "env_curriculum_stats/per_label_samples/*",
        "sum",
        "episodes of a label in this epoch",
        "count",
    ),
    (
        "env_curriculum_stats/per_label_success/*",
        "mean",
        "success of a label in this epoch; only labels with results",
        "sum(success) / episodes with a success",
    ),
    (
        "env_curriculum_stats/per_label_probs/*",
        "last",
        "probability that the next draw has the label",
        "sum(prob)",
    ),
    (
        "env_curriculum_stats/pool_composition_fraction/*",
        "last",
        "share of the active tasks that have the label",
        "active tasks of the label / active tasks",
    ),
    (
        "env_curriculum_stats/tracked_task_lp_scores/*",
        "last",
        "`task_k`: score of the task now in slot k, the same slot for all envs",
        "score",
    ),
    (
        "env_curriculum_stats/tracked_task_completions/*",
        "sum",
        "`task_k`: episodes in this epoch of the task now in slot k",
        "count",
    ),
    (
        "env_curriculum_stats/num_evicted",
        "last",
        "tasks that the method has replaced by others so far",
        "count",
    ),
    (
        "env_curriculum_stats/num_orphaned",
        "last",
        "results so far of tasks that were replaced before they arrived",
        "count",
    ),
    ("env_curriculum_stats/num_quarantined", "last", "slots out of play now", "count"),
    (
        "env_curriculum_stats/num_active_tasks",
        "last",
        "slots in play now",
        "slots - num_quarantined",
    ),
    (
        "env_curriculum_stats/total_completions",
        "last",
        "episodes counted so far, since the meter was made or as restored with it",
        "count",
    ),
    ("env_curriculum_stats/plan_version", "last", "version of the plan", ""),
    (
        "env_curriculum_stats/stage",
        "last",
        "position of the current stage, from 0; only where stages are in force",
        "",
    ),
    (
        "env_curriculum_stats/phase",
        "last",
        "position of the current phase, from 0; only for phased curricula",
        "",
    ),
)

SIMULATOR: tuple[Row, ...] = (
    (
        "overview/mean_performance",
        "last",
        "how well the simulated learner does on average; P is its hidden chance of success",
        "mean of P over tasks",
    ),
    ("overview/max_performance", "last", "its best task", "max of P over tasks"),
    (
        "overview/tasks_above_threshold",
        "last",
        "tasks at or above the mastery line",
        "count of P >= line",
    ),
    (
        "overview/mastered_fraction",
        "last",
        "share of the learnable tasks that are mastered",
        "count of learnable P >= line / num_learnable",
    ),
    (
        "env_task_dependency/mean_performance",
        "last",
        "as overview/mean_performance",
        "mean of P over tasks",
    ),
    (
        "env_task_dependency/max_performance",
        "last",
        "as overview/max_performance",
        "max of P over tasks",
    ),
    (
        "env_task_dependency/min_performance",
        "last",
        "the worst task",
        "min of P over tasks",
    ),
    (
        "env_task_dependency/performance_std",
        "last",
        "how far tasks lie apart",
        "std of P over tasks",
    ),
    (
        "env_task_dependency/tasks_above_threshold",
        "last",
        "as overview/tasks_above_threshold",
        "count of P >= line",
    ),
    ("env_task_dependency/total_samples", "last", "plays so far, of all envs", "count"),
    (
        "env_task_dependency/performance",
        "mean",
        "P of the task played, by plays in this epoch",
        "sum(P of the task) / plays",
    ),
    ("env_task_dependency/reward", "mean", "reward by plays in this epoch", "sum(reward) / plays"),
    (
        "env_task_dependency/success",
        "mean",
        "success by plays in this epoch",
        "sum(success) / plays",
    ),
    (
        "env_task_dependency/num_learnable",
        "last",
        "tasks that can be mastered at all: neither impossible nor pure noise",
        "count",
    ),
    (
        "env_task_dependency/share_mastered",
        "mean",
        "share of this epoch's plays spent on tasks already mastered",
        "plays with P >= line / plays",
    ),
    (
        "env_task_dependency/share_locked",
        "mean",
        "share of this epoch's plays spent on tasks whose prerequisites are not there",
        "plays with gate < 0.5 / plays",
    ),
    (
        "env_task_dependency/share_impossible",
        "mean",
        "share of this epoch's plays spent on tasks that are impossible or pure noise",
        "plays of such tasks / plays",
    ),
    (
        "env_task_dependency/per_label_performance/*",
        "last",
        "mean performance of a label",
        "mean of P over tasks of the label",
    ),
)

TRAINING: tuple[Row, ...] = (
    ("throughput/env_seconds", "last", "seconds of this epoch spent stepping envs", ""),
    (
        "throughput/act_seconds",
        "last",
        "seconds of this epoch spent choosing actions, those of neural opponents included",
        "",
    ),
    (
        "throughput/learn_seconds",
        "last",
        "seconds of this epoch spent remembering and learning; a GPU may still be at it",
        "",
    ),
    ("throughput/updates", "last", "updates of the agent so far", "count"),
    (
        "env_opponents/games/*",
        "sum",
        "games against neural opponents that ended in this epoch, by kind: newest, pool, archive, "
        "named",
        "count",
    ),
    ("env_opponents/won/*", "mean", "share of them that the learner has won", "won / games"),
    ("env_opponents/drawn/*", "mean", "share of them that were draws", "drawn / games"),
    ("env_opponents/members/*", "last", "opponents of that kind that may be drawn", "count"),
    (
        "env_opponents/rating",
        "last",
        "the learner's rating among an archive's agents, cautiously",
        "mu - 3·sigma",
    ),
    (
        "env_opponents/archive_trouble",
        "max",
        "1 if the archive could not be read or written in this epoch",
        "",
    ),
    ("evaluation/num_games", "last", "episodes of an evaluation", "count"),
    ("evaluation/num_steps", "last", "env steps of an evaluation", "count"),
    (
        "evaluation/steps",
        "last",
        "env steps of all evaluations so far; they count in the budget of a training",
        "sum of evaluation/num_steps",
    ),
    *(
        (f"evaluation/{name}{group}", "last", f"{meaning}{words}", formula)
        for name, meaning, formula in (
            ("success", "share of held-out episodes that succeeded", "successes / episodes"),
            ("win_rate", "share of held-out games won; draws are not won", "won / games"),
            ("draw_rate", "share of held-out games that ended in a draw", "drawn / games"),
            ("loss_rate", "share of held-out games lost", "lost / games"),
            ("return", "return of held-out episodes", "mean"),
            ("length", "env steps of held-out episodes", "mean"),
        )
        for group, words in (("", ", all together"), ("/*", ", by stage, opponent or label"))
    ),
)

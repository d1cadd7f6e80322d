from __future__ import annotations

import pytest

from cockpit.domain.progress import ProgressReader
from cockpit.domain.runs import Progress


def read(*lines: str) -> Progress:
    reader = ProgressReader()
    for line in lines:
        reader.feed(line)
    return reader.progress


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  2%|▏         | 1/60 [00:02<02:05,  2.12s/it]", Progress(1, 60, step_s=2.12, eta_s=59 * 2.12)),
        ("  0%|          | 0/60 [00:00<?, ?it/s]", Progress(0, 60)),
        (" 10%|#         | 10/100 [00:04<00:36,  2.50it/s, loss=0.12]",
         Progress(10, 100, loss=0.12, step_s=0.4, eta_s=36.0)),
        ("{'loss': '4.771', 'grad_norm': '3.162', 'learning_rate': '0.00085', 'epoch': '0.1333'}",
         Progress(epoch=0.1333, loss=4.771)),
        ("{'loss': 2.31, 'learning_rate': 1e-05, 'epoch': 0.4}", Progress(epoch=0.4, loss=2.31)),
        ("{'loss': 1.2, 'epoch': 0.1, 'global_step/max_steps': '10/100', 'elapsed_time': '1m 2s', "
         "'remaining_time': '9m 18s', 'train_speed(s/it)': 6.2}",
         Progress(10, 100, epoch=0.1, loss=1.2, step_s=6.2, eta_s=90 * 6.2)),
        ('{"current_steps": 10, "total_steps": 100, "loss": 1.2, "lr": 0.0001, "epoch": 0.1}',
         Progress(10, 100, epoch=0.1, loss=1.2)),
        ("Epoch 3:  42%|████▏     | 42/100 [00:01<00:02, 25.00it/s, v_num=0, train_loss=0.12]",
         Progress(42, 100, epoch=3.0, step_s=0.04, eta_s=58 * 0.04)),
        ("Epoch 1/1  ━━━━━━━━━━━━━━━━ 100/100 0:00:00 • 500.00it/s v_num: 0.000",
         Progress(100, 100, epoch=1.0, step_s=0.002, eta_s=0.0)),
        ("[2026-11-30 20:47:32,873] [INFO] [logging.py:107:log_dist] [Rank 0] step=10, skipped=0, lr=[0.001], mom=[]",
         Progress(10)),
        ("[INFO] [timer.py:264:stop] epoch=0/micro_step=20/global_step=10, RunningAvgSamplesPerSec=123.4, Curr",
         Progress(10)),
        ("steps: 10 loss: 2.3456 iter time (s): 0.512 samples/sec: 62.500",
         Progress(10, loss=2.3456, step_s=0.512)),
        (" [2026-11-30 20:00:00.123456] iteration      100/   10000 | consumed samples:        25600 | elapsed time "
         "per iteration (ms): 1250.0 | learning rate: 1.5E-04 | global batch size:   256 | lm loss: 7.12E+00 |",
         Progress(100, 10000, loss=7.12, step_s=1.25, eta_s=9900 * 1.25)),
        ("1|10|Loss: 1.2345678:  10%|█         | 10/100 [00:12<01:50,  1.25s/it]",
         Progress(10, 100, step_s=1.25, eta_s=112.5)),
        ("Step 10 | loss:1.23 lr:2e-05 tokens_per_second_per_gpu:1234.5 ",
         Progress(10, loss=1.23, tokens_s=1234.5)),
        ("iter 100: loss 3.1234, time 125.00ms, mfu 1.23%", Progress(100, loss=3.1234, step_s=0.125)),
        ("        1/2         0G      5.752      4.109      4.333          8        160: 50% ━━━━━━────── 1/2 1.7s/it "
         "1.1s<1.7s", Progress(1, 2, epoch=1.0, step_s=1.7, eta_s=1.7)),
        ("(APIServer pid=12) INFO 11-30 20:00:00 [loggers.py:336] Engine 000: Avg prompt throughput: 12.3 tokens/s, "
         "Avg generation throughput: 45.6 tokens/s, Running: 2 reqs", Progress(tokens_s=45.6)),
        ("[2026-11-30 20:00:00 TP0] Decode batch, #running-req: 2, #token: 900, token usage: 0.01, cuda graph: True, "
         "gen throughput (token/s): 123.45, #queue-req: 0", Progress(tokens_s=123.45)),
        ("step 812/2000 | loss 1.83 | lr 3e-4", Progress(812, 2000, loss=1.83)),
        ("global_step=7 loss: nan", Progress(7)),
    ],
)  # fmt: skip
def test_each_tool_is_understood(line: str, expected: Progress) -> None:
    told = read(line)
    assert told.eta_s == pytest.approx(expected.eta_s)
    assert (told.step, told.total_steps, told.epoch, told.loss, told.step_s, told.tokens_s) == (
        expected.step,
        expected.total_steps,
        expected.epoch,
        expected.loss,
        expected.step_s,
        expected.tokens_s,
    )


@pytest.mark.parametrize(
    "line",
    [
        "model.safetensors:  27%|███ | 5.40G/20.4G [13:09<1:22:36, 3.02MB/s]",
        "Loading checkpoint shards: 100%|##########| 2/2 [00:01<00:00,  1.00it/s]",
        "Map:  50%|█████     | 1.20k/2.40k [00:01<00:01, 900 examples/s]",
        "Writing model shards:   0%|          | 0/1 [00:00<?, ?it/s]",
        "{'eval_loss': '2.9', 'eval_runtime': '0.16', 'epoch': '0.4'}",
        "a step towards the goal",
        "saved at step 800",
        "tokens_per_second is a name",
    ],
)
def test_other_bars_and_texts_are_no_progress(line: str) -> None:
    assert read(line) == Progress()


def test_an_evaluation_bar_beside_the_training_bar_is_left_out() -> None:
    train = " 41%|####      | 812/2000 [41:12<59:40,  3.00s/it]"
    told = read(
        train, " 50%|#####     | 4/8 [00:01<00:01,  4.00it/s]", "{'loss': 1.8, 'epoch': 0.4}"
    )
    assert (told.step, told.total_steps, told.loss) == (812, 2000, 1.8)


def test_other_ranks_say_nothing() -> None:
    bar = "  2%|#| 1/60 [00:02<02:05,  2.12s/it]"
    assert read(f"[rank3]:{bar}", f"[default1]:{bar}") == Progress()
    assert read(f"[rank0]:{bar}").step == 1


def test_the_pace_is_measured_by_our_clock_and_not_by_the_bar() -> None:
    reader = ProgressReader()
    for step, at_s in ((31, 100.0), (32, 100.1), (33, 103.1), (34, 106.1)):
        reader.feed(f" 50%|##| {step}/60 [00:00<00:00, 212.43it/s]", at_s)
    assert reader.progress.step_s == pytest.approx(3.0)
    assert reader.progress.eta_s == pytest.approx(26 * 3.0)


def test_a_restart_begins_to_measure_anew() -> None:
    reader = ProgressReader()
    for step, at_s in ((50, 0.0), (51, 1.0), (52, 2.0), (1, 500.0), (2, 510.0), (3, 520.0)):
        reader.feed(f" 50%|##| {step}/60 [00:00<00:00,  1.00it/s]", at_s)
    assert reader.progress.step == 3
    assert reader.progress.step_s == pytest.approx(10.0)


def test_only_changes_are_told() -> None:
    reader = ProgressReader()
    bar = "  2%|#| 1/60 [00:02<02:05,  2.12s/it]"
    assert reader.feed(bar)
    assert not reader.feed(bar)
    assert not reader.feed("nothing of the kind")


@pytest.mark.parametrize(
    "text", ["%|" * 50_000, "step " * 50_000, "'loss': " * 20_000, "9" * 100_000 + "it/s"]
)
def test_hostile_lines_take_no_time(text: str) -> None:
    assert read(text).step is None

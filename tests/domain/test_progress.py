from __future__ import annotations

import pytest

from cockpit.domain.progress import Marks, ProgressReader
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
         Progress(42, 100, epoch=3.0, loss=0.12, step_s=0.04, eta_s=58 * 0.04)),
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
        ("[titan] 2026-11-30 20:00:00,123 - root - INFO - step: 10  loss:  7.5500  grad_norm:  1.2  "
         "memory: 30.65GiB(32.25%)  tps: 7,163  tflops: 400.1  mfu: 40.12%", Progress(10, loss=7.55, tokens_s=7163.0)),
        (" 938/1875 ━━━━━━━━━━━━━━━━━━━━ 3s 2ms/step - accuracy: 0.88 - loss: 0.41",
         Progress(938, 1875, loss=0.41, step_s=0.002, eta_s=937 * 0.002)),
        (" 10/100 [==>...........................] - ETA: 12s - loss: 0.5", Progress(10, 100, loss=0.5)),
        ("100/100 [==============================] - 3s 30ms/step - loss: 0.2",
         Progress(100, 100, loss=0.2, step_s=0.03, eta_s=0.0)),
        ("Epoch: [0]  [  10/5005]  eta: 1:00:00  lr: 0.1  img/s: 200.1  loss: 6.9000 (6.9100)  time: 0.5000  "
         "data: 0.4100  max mem: 5000", Progress(10, 5005, loss=6.9, step_s=0.5, eta_s=4995 * 0.5)),
        (" 10%|#         | 10/100 [00:04<00:36,  2.50batch/s]", Progress(10, 100, step_s=0.4, eta_s=36.0)),
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


def test_servers_tell_requests_and_the_cache_s_fill() -> None:
    vllm = read(
        "(APIServer pid=1) INFO 06-01 09:00:10 [loggers.py:257] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg "
        "generation throughput: 412.9 tokens/s, Running: 37 reqs, Waiting: 120 reqs, Preemptions: 9, GPU KV cache "
        "usage: 99.6%, Prefix cache hit rate: 12.4%"
    )
    told = (vllm.tokens_s, vllm.requests_running, vllm.requests_waiting, vllm.kv_pct)
    assert told == (412.9, 37, 120, 99.6)
    sglang = read(
        "[2026-05-01 10:00:00 TP0] Decode batch, #running-req: 64, #token: 310022, token usage: 0.75, cuda graph: "
        "True, gen throughput (token/s): 3120.44, #queue-req: 12"
    )
    told = (sglang.tokens_s, sglang.requests_running, sglang.requests_waiting, sglang.kv_pct)
    assert told == (3120.44, 64, 12, 75.0)
    assert read(
        "eval time = 14.52 ms / 64 runs (0.23 ms per token, 4407.71 tokens per second)"
    ) == Progress(tokens_s=4407.71)
    assert (
        read("prompt eval time = 9.00 ms / 1 tokens (9.00 ms per token, 111.1 tokens per second)")
        == Progress()
    )


def test_throughput_and_the_wait_for_data_are_read() -> None:
    megatron = read(
        " iteration 100/ 10000 | consumed samples: 25600 | elapsed time per iteration (ms): 2000.0 | learning rate: "
        "1.5E-04 | global batch size:   256 | lm loss: 7.12E+00 |"
    )
    assert (megatron.samples_s, megatron.loss) == (128.0, 7.12)
    assert read("steps: 10 loss: 2.3 iter time (s): 0.512 samples/sec: 62.500").samples_s == 62.5
    speed = "[INFO] [timer.py:264:stop] epoch=0/micro_step=20/global_step=10, RunningAvgSamplesPerSec=123.4"
    assert read(f"{speed}, CurrSamplesPerSec=130.1, Mem").samples_s == 130.1
    for line in (
        "Epoch(train)  [1][ 50/1000]  lr: 1e-3  eta: 1:00:00  time: 0.5120  data_time: 0.2100  loss: 1.2",
        "Train: 0 [  50/1251 (  4%)]  Loss: 6.9 (6.9)  Time: 0.512s,  500/s  LR: 1e-3  Data: 0.210 (0.2)",
        "Epoch: [0][  10/5005]\tTime  0.512 (  0.6)\tData  0.210 (  0.1)\tLoss 6.9e+00 (6.9e+00)",
        "eta: 0:10:00  iter: 19  total_loss: 1.2  time: 0.512  last_time: 0.5  data_time: 0.210  lr: 0.1",
    ):
        assert (read(line).data_s, read(line).step_s) == (0.21, 0.512), line
    assert read("Test:  [ 10/391]  eta: 0:01:00  loss: 0.9  time: 0.5  data: 0.4").step is None


def marks(*lines: str) -> Marks:
    reader = ProgressReader()
    for line in lines:
        reader.feed(line)
    return reader.marks


TRAIN = " 41%|####      | 812/2000 [41:12<59:40,  3.00s/it]"


@pytest.mark.parametrize(
    ("lines", "moves", "phase"),
    [
        ([TRAIN, " 50%|#### | 4/8 [00:01<00:01,  4.00it/s]", " 62%|##### | 5/8 [00:01<00:01,  4.00it/s]"], 2, ""),
        ([TRAIN, "Evaluating:  50%|## | 4/8 [00:01<00:01,  4.00it/s]"], 1, "evaluate"),
        ([TRAIN, "model.safetensors:  27%|███ | 5.40G/20.4G [13:09<1:22:36, 3.02MB/s]"] * 2, 1, ""),
        ([TRAIN, "Saving model checkpoint to out/checkpoint-800"], 0, "save"),
        (["Saving model checkpoint to out/checkpoint-800", TRAIN], 0, ""),
        (["torch.compile: compiling graph 3"], 0, "compile"),
        (["[rank3]: Saving model checkpoint"], 0, ""),
        (["still alive"] * 5, 0, ""),
    ],
    ids=["eval bar", "named bar", "same place", "save", "step after", "compile", "other rank", "heartbeat"],
)  # fmt: skip
def test_what_moves_beside_the_steps_is_noted(lines: list[str], moves: int, phase: str) -> None:
    told = marks(*lines)
    assert (told.moves, told.phase) == (moves, phase)


@pytest.mark.parametrize(
    ("lines", "bad"),
    [
        (["step 1 loss 2.0", "step 2 loss nan", "step 3 loss nan"], 2),
        (["step 1 loss nan", "step 2 loss 2.0"], 0),
        (["iter 1: loss nan, time 12.00ms", "iter 2: loss inf, time 12.00ms"], 2),
        ([" 10%|# | 10/100 [00:04<00:36,  2.50it/s, loss=nan]"] * 5, 1),
        (["{'loss': 'nan', 'grad_norm': '1', 'epoch': '0.1'}", "{'loss': nan, 'epoch': 0.2}"], 2),
        (["step 7 | loss 1.1 | nan_count=0"], 0),
    ],
    ids=["two", "one and over", "nanogpt", "one bar, drawn often", "hf", "a name"],
)
def test_losses_that_are_none_are_counted_in_a_row(lines: list[str], bad: int) -> None:
    assert marks(*lines).bad_losses == bad


def test_a_server_that_makes_no_token_while_requests_run_is_noted() -> None:
    line = (
        "Engine 000: Avg prompt throughput: {} tokens/s, Avg generation throughput: {} tokens/s, Running: {} reqs, "
        "Waiting: 0 reqs, GPU KV cache usage: 1.2%"
    )
    assert marks(*[line.format("0.0", "0.0", 2)] * 3).stuck_reports == 3
    assert marks(line.format("0.0", "0.0", 2), line.format("0.0", "9.5", 2)).stuck_reports == 0
    assert marks(line.format("900.0", "0.0", 1)).stuck_reports == 0, "it reads a long prompt"
    assert marks(line.format("0.0", "0.0", 0)).stuck_reports == 0, "nobody asks"


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


@pytest.mark.parametrize("digits", [13, 400, 5000])
@pytest.mark.parametrize(
    "line",
    ["iter {}: loss 1.0, time 1.0ms", "[Rank 0] step={}, skipped=0", "steps: {} loss: 1.0 iter time (s): 1.0",
     " 10%|# | {}/{} [00:04<00:36,  2.50it/s]", "  {}/2  0G  5.7  50% ━━ 1/2 1.7s/it",
     " 1/{} ━━━ 3s 2ms/step - loss: 1",
     "Running: 1 reqs, Avg generation throughput: {}.0 tokens/s"],
)  # fmt: skip
def test_numbers_that_nobody_counts_to_are_none(line: str, digits: int) -> None:
    told = read(line.replace("{}", "9" * digits))
    assert told.step is None or told.step <= 10**12


@pytest.mark.parametrize(
    "text",
    [
        "%|" * 50_000,
        "step " * 50_000,
        "'loss': " * 20_000,
        "9" * 100_000 + "it/s",
        "time: 0.5 data " * 20_000,
        "1/2 [" + "=" * 100_000 + "] - ETA: ",
        "saving " * 50_000,
        "#running-req: TP " * 20_000,
    ],
)
def test_hostile_lines_take_no_time(text: str) -> None:
    assert read(text).step is None

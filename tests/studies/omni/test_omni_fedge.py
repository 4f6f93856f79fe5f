"""Omni-Fedge in both modes: ω against a numerical minimiser, gradients against finite differences, a round by hand, and
the case of one node."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from fedrepro.algorithms.fedsgd import FedSGD
from fedrepro.core.federation import LocalWork
from fedrepro.core.params import Params
from fedrepro.errors import UserError
from fedrepro.studies.omni.algorithms.fedsgd_authors import FedSGDAuthors
from fedrepro.studies.omni.algorithms.omni_fedge import (
    OmniFedge,
    losses,
    mean_losses,
    shared_gradient,
    split,
    weighing,
)
from fedrepro.studies.omni.algorithms.omni_fedge_authors import LOCAL_LR, OmniFedgeAuthors, own_models, weights
from tests.builders import federations, make_plan, make_problem, make_replicates, make_task, run

STEPS = LocalWork(steps=3, batch=4)
PLAN = make_plan(1, STEPS, "uniform")


def three_nodes(sizes=(4, 4, 4)):
    return federations("mlp", {0: list(sizes)})[0]


def whole(data, k: int):
    """All samples of a node: four samples in batches of four, so every mini-batch contains them all."""
    return data.train.full_batch(k)


# --- ω ----------------------------------------------------------------------------------------------------------------


def test_omega_minimises_the_objective_2():
    found = torch.tensor(np.random.default_rng(1).uniform(0.05, 3, (4, 4)))
    omega = OmniFedge().omega(found).numpy()
    for line, mine in zip(found.numpy(), omega, strict=True):
        best = minimize(lambda w, line=line: w @ line - np.log(w).sum(), np.ones(4), bounds=[(1e-6, None)] * 4)
        np.testing.assert_allclose(mine, best.x, rtol=1e-3)


def test_omega_is_bounded_where_a_loss_vanishes():
    assert OmniFedge(floor=0.01).omega(torch.tensor([[0.0, 0.5]])).tolist() == [[100.0, 2.0]]


def test_even_weights_have_the_mean_and_so_the_step_length_of_the_uneven_ones():
    found = torch.tensor([[0.5, 0.25], [1.0, 0.2]], dtype=torch.float64)  # 1/L: 2, 4, 1, 5
    assert OmniFedge(weights="even").omega(found).tolist() == [[3, 3], [3, 3]]


def test_the_authors_weights_of_the_notes_example():
    found = weights(np.array([0.3, 0.6, 1.2, 2.0, 2.3]), np.full(5, 0.2))
    np.testing.assert_allclose(found, [0.32, 0.27, 0.19, 0.12, 0.10], atol=0.005)
    assert found.sum() == pytest.approx(1)


def test_the_authors_weights_minimise_what_their_code_minimises():
    rng = np.random.default_rng(0)
    line = rng.uniform(0.2, 2.5, 3)
    mine = weights(line, np.full(3, 1 / 3))

    def objective(omega):
        return line @ np.sqrt(omega) - 0.5 * np.log(omega).sum()

    grid = [(a, b, 1 - a - b) for a in np.linspace(0.01, 0.98, 98) for b in np.linspace(0.01, 0.98, 98) if a + b < 0.99]
    assert objective(mine) <= min(map(objective, map(np.array, grid))) + 1e-6


def test_equal_losses_give_equal_weights_in_both_modes():
    np.testing.assert_allclose(weights(np.full(4, 0.7), np.array([0.4, 0.3, 0.2, 0.1])), 0.25, atol=1e-4)
    assert OmniFedge().omega(torch.full((2, 2), 0.5)).tolist() == [[2, 2], [2, 2]]


# --- losses and gradients ---------------------------------------------------------------------------------------------


def heads_and_shared(task, count: int = 3):
    shared, head = split(task, task.start)
    generator = torch.Generator().manual_seed(3)
    drawn = {k: torch.randn(count, *v.shape, generator=generator, dtype=v.dtype) for k, v in head.items()}
    return shared, Params(drawn)


def test_the_losses_of_all_heads_are_those_of_the_models_one_by_one():
    task, data = make_task("mlp"), three_nodes()
    shared, heads = heads_and_shared(task)
    found = losses(task, shared, heads, whole(data, 1))
    for j in range(3):
        w = Params({**shared, **{k: v[j] for k, v in heads.items()}})
        torch.testing.assert_close(found[j], task.loss(w, whole(data, 1)))


def test_the_gradient_of_the_objective_against_finite_differences():
    task, data = make_task("mlp"), three_nodes()
    shared, heads = heads_and_shared(task)
    omega, batch = torch.tensor([0.5, 2.0, 1.3], dtype=torch.float64), whole(data, 0)
    gradient = shared_gradient(task, shared, heads, omega, batch).flatten()
    flat, step = shared.flatten(), 1e-6
    for p in range(len(flat)):
        ends = [flat.clone(), flat.clone()]
        ends[0][p] += step
        ends[1][p] -= step
        up, down = (omega @ losses(task, shared.unflatten(end), heads, batch) for end in ends)
        assert gradient[p].item() == pytest.approx(((up - down) / (2 * step)).item(), abs=1e-7)


def test_a_part_of_the_gradient_is_the_part_of_the_gradient():
    task, data = make_task("mlp"), three_nodes()
    own = list(task.model.own)
    part, all_of_it = (task.gradient(task.start, whole(data, 0), of=names) for names in (own, None))
    assert list(part) == own
    for name in own:
        torch.testing.assert_close(part[name], all_of_it[name])


# --- a round ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
@pytest.mark.parametrize("kind", ["bayes", "even", "ones"])
def test_a_round_step_by_step(strategy, kind):
    task, data = make_task("mlp"), three_nodes()
    algorithm = OmniFedge(lr=0.3, head_lr=0.2, weights=kind)
    state = run(task, data, PLAN, algorithm, strategy=strategy).only.state
    shared, head = split(task, task.start)
    heads = []  # step 5: one step on the node's own data
    for k in range(3):
        g = task.gradient(task.start, whole(data, k), of=list(head))
        heads.append(Params({name: head[name] - 0.2 * g[name] for name in head}))
    models = [Params({**shared, **mine}) for mine in heads]
    table = torch.stack([torch.stack([task.loss(w, whole(data, k)) for k in range(3)]) for w in models])
    ones = torch.ones(3, 3, dtype=torch.float64)
    omega = {"bayes": 1 / table, "even": (1 / table).mean() * ones, "ones": ones}[kind]
    total = {name: torch.zeros_like(v) for name, v in shared.items()}
    for k in range(3):  # steps 10–12
        for j, w in enumerate(models):
            g = task.gradient(w, whole(data, k), of=list(shared))
            for name in total:
                total[name] += omega[j, k] * g[name] / 3
    if kind != "ones":
        torch.testing.assert_close(state["losses"], table)
    torch.testing.assert_close(state["omega"], omega)
    for name, value in shared.items():
        torch.testing.assert_close(state["shared"][name], value - 0.3 * total[name])
    for name in head:
        torch.testing.assert_close(state["heads"][name], torch.stack([mine[name] for mine in heads]))


def test_the_losses_behind_omega_are_those_of_all_samples_of_a_node(monkeypatch):
    """Nine samples in batches of four, and the losses computed five samples at a time."""
    monkeypatch.setattr("fedrepro.studies.omni.algorithms.omni_fedge.PART", 5)
    task, data = make_task("mlp"), three_nodes((9, 4, 7))
    shared, heads = heads_and_shared(task)
    for k, size in enumerate((9, 4, 7)):
        every = [
            losses(task, shared, heads, data.train.full_batch(k)._replace(x=x[None], y=y[None]))
            for x, y in zip(*whole(data, k)[:2], strict=True)
        ]
        assert len(every) == size
        torch.testing.assert_close(mean_losses(task, shared, heads, whole(data, k)), torch.stack(every).mean(0))
    state = run(task, data, PLAN, OmniFedge(lr=1e-12, head_lr=1e-12)).only.state  # nothing moves
    at_start = torch.stack([task.loss(task.start, whole(data, k)) for k in range(3)])
    torch.testing.assert_close(state["omega"], (1 / at_start).expand(3, 3), rtol=1e-9, atol=0)


def test_omega_is_kept_until_it_is_computed_anew():
    task, data = make_task("mlp"), three_nodes()
    after = [
        run(task, data, make_plan(rounds, STEPS, "uniform"), OmniFedge(lr=0.3, refresh=3)).only.state["omega"]
        for rounds in (1, 3, 4)
    ]
    assert torch.equal(after[0], after[1])
    assert (after[2] - after[1]).abs().max() > 1e-3
    found = run(task, data, make_plan(7, STEPS, "uniform"), OmniFedge(lr=0.3, refresh=3)).frame
    assert sorted(set(found.loc[found["metric"] == "omega", "round"])) == [1, 4, 7]


def test_one_node_descends_the_logarithm_of_its_loss_in_the_shared_part():
    task, data = make_task("mlp"), three_nodes((4,))
    algorithm = OmniFedge(lr=0.1, head_lr=1e-12)  # the head stays
    state = run(task, data, PLAN, algorithm).only.state
    shared, _ = split(task, task.start)
    inner = {name: value.clone().requires_grad_() for name, value in task.start.items()}
    value = torch.log(task.loss(Params(inner), whole(data, 0)))
    for name, g in zip(shared, torch.autograd.grad(value, [inner[name] for name in shared]), strict=True):
        torch.testing.assert_close(state["shared"][name], shared[name] - 0.1 * g, rtol=1e-9, atol=1e-9)


def test_a_node_uses_its_own_head():
    task, data = make_task("mlp"), three_nodes()
    r = run(task, data, PLAN, OmniFedge()).only
    for k in range(3):
        mine = r.algorithm.model(r.state, None, k)
        assert torch.equal(mine["layers.2.bias"], r.state["heads"]["layers.2.bias"][k])
        assert torch.equal(mine["layers.0.bias"], r.state["shared"]["layers.0.bias"])


# --- as the authors' code runs it -------------------------------------------------------------------------------------


def own_models_of(task):
    generators = {k: torch.Generator().manual_seed(k) for k in range(3)}
    return [
        Params({n: torch.randn(v.shape, generator=generators[k], dtype=v.dtype) for n, v in task.start.items()})
        for k in range(3)
    ]


def with_own_models(task, data, algorithm, models):
    """A replicate whose nodes start from different models."""
    (r,) = make_replicates(task, data, PLAN, algorithm)
    r.problem = dataclasses.replace(make_problem(task, data, PLAN), initial=lambda client: models[client])
    return r


def advance_once(task, r):
    from fedrepro.core.clients import run_loop
    from fedrepro.core.rounds import advance

    r.state = r.algorithm.init(r.problem, r.w)
    advance(task, [r], PLAN, run_loop, 0)
    return r.state


def test_a_round_of_the_authors_code_step_by_step():
    task, data = make_task("mlp"), three_nodes()
    models = own_models_of(task)
    state = advance_once(task, with_own_models(task, data, OmniFedgeAuthors(lr=0.2), models))
    on_data = np.array([[task.loss(w, whole(data, j)).item() for w in models] for j in range(3)])  # [node, model]
    # ω_i from all models' losses on node i's data, then used for model i on all nodes' data
    omega = np.array([weights(on_data[i], np.full(3, 1 / 3)) for i in range(3)])
    np.testing.assert_allclose(state["omega"].numpy(), omega, rtol=1e-6)
    shared, head = split(task, models[0])
    for i, w in enumerate(models):
        w = w.clone()
        for names in (list(shared), list(head)):  # the head's step at the new shared part
            gradients = [task.gradient(w, whole(data, j), of=names) for j in range(3)]
            w = Params(
                {
                    n: v - 0.2 * sum(omega[i, j] * gradients[j][n] for j in range(3)) if n in names else v
                    for n, v in w.items()
                }
            )
        for name, value in w.items():
            torch.testing.assert_close(state["models"][name][i], value)


def test_fedsgd_of_the_authors_never_becomes_one_model():
    task, data = make_task("mlp"), three_nodes()
    models = own_models_of(task)
    r = with_own_models(task, data, FedSGDAuthors(lr=0.5), models)
    state = advance_once(task, r)
    mean = sum((task.gradient(w, whole(data, k)) * (1 / 3) for k, w in enumerate(models)), models[0] * 0.0)
    for k, w in enumerate(models):
        now = r.algorithm.model(state, r.local_of(k), k)
        for name in w:
            torch.testing.assert_close(now[name], w[name] - 0.5 * mean[name])


def test_from_one_model_fedsgd_of_the_authors_is_fedsgd():
    task, data = make_task("mlp"), three_nodes()
    plan = make_plan(3, STEPS, "uniform")
    ours, theirs = (run(task, data, plan, make(lr=0.5)) for make in (FedSGD, FedSGDAuthors))
    for name, value in ours.w.items():
        for mine in theirs.only.state["models"][name]:
            torch.testing.assert_close(mine, value)
    np.testing.assert_allclose(ours.values("loss", client=-1), theirs.values("loss", client=-1))


def test_local_training_before_the_first_round_by_hand():
    """Five epochs of one batch: plain gradient descent on a node's own data; no epoch leaves the models as they are."""
    task, data = make_task("mlp"), three_nodes()
    models = own_models_of(task)
    problem = dataclasses.replace(make_problem(task, data, PLAN), initial=lambda client: models[client])
    found, untrained = (own_models(problem, task.start, epochs) for epochs in (5, 0))
    for k, w in enumerate(models):
        assert all(torch.equal(untrained[name][k], w[name]) for name in w)
        for _ in range(5):
            w = w.add(task.gradient(w, whole(data, k)), alpha=-LOCAL_LR)
        for name, value in w.items():
            torch.testing.assert_close(found[name][k], value)
    for make in (FedSGDAuthors, OmniFedgeAuthors):
        state = make(local_epochs=5).init(problem, task.start)
        assert all(torch.equal(state["models"][name], found[name]) for name in found)


def test_a_query_is_one_batch():
    task, data = make_task("mlp"), three_nodes((9, 9, 9))
    one, first = (
        run(task, data, make_plan(1, work, "uniform"), FedSGD(lr=0.5, queries=queries)).w
        for work, queries in ((STEPS, 1), (LocalWork(steps=1, batch=4), 0))
    )
    for name in one:
        torch.testing.assert_close(one[name], first[name])


# --- what is recorded, and wrong input --------------------------------------------------------------------------------


def test_nodes_record_their_sizes_and_the_overlap_of_their_labels():
    task = make_task("mlp")
    data = three_nodes((2, 4))
    data.train.samples.y[:] = torch.tensor([0, 1, 1, 1, 2, 2])
    found = list(weighing(make_problem(task, data, PLAN), {}, round=0))
    assert [(m.client, m.value) for m in found if m.metric == "samples"] == [(0, 2), (1, 4)]
    overlap = {(m.client, m.step): m.value for m in found if m.metric == "overlap"}
    assert overlap == {(0, 0): 1, (0, 1): 0.5, (1, 0): 0.5, (1, 1): 1}


def test_too_few_batches_are_refused():
    task, data = make_task("mlp"), three_nodes()
    plan = make_plan(1, LocalWork(steps=2, batch=4), "uniform")
    with pytest.raises(UserError, match="head_steps = 2 needs 3 batches per round"):
        run(task, data, plan, OmniFedge(head_steps=2))
    with pytest.raises(UserError, match="needs 3 batches per round"):
        run(task, data, plan, OmniFedgeAuthors())


@pytest.mark.parametrize("make", [OmniFedge, OmniFedgeAuthors])
def test_a_part_of_the_nodes_is_refused(make):
    with pytest.raises(UserError, match="every node takes part"):
        run(make_task("mlp"), three_nodes(), make_plan(1, STEPS, clients=2), make())


def test_a_model_without_own_layers_is_refused():
    data = federations("softmax", {0: [4, 4]})[0]
    with pytest.raises(UserError, match="SoftmaxRegression has no parameters that are a node's own"):
        run(make_task("softmax"), data, PLAN, OmniFedge())


@pytest.mark.parametrize(
    ("hyper", "words"),
    [
        ({"lr": 0.0}, "lr = 0.0: the step must be positive"),
        ({"head_lr": -1.0}, "head_lr = -1.0"),
        ({"head_steps": 0}, "head_steps = 0: at least one"),
        ({"floor": 0.0}, "floor = 0.0: must be positive"),
        ({"refresh": 0}, "refresh = 0: at least one round"),
        ({"weights": "equal"}, "weights = 'equal': one of bayes, even, ones"),
    ],
)
def test_wrong_hyper_parameters(hyper, words):
    with pytest.raises(UserError, match=words):
        OmniFedge(**hyper)

# What a notebook does in TestADaskClusterKeepsItsWorkers. The test has put namespace and image before it.
import os
import time

import htc
from distributed import Event


def step(name):
    """Waits until the test has done its part."""
    open(name, "w").close()
    until(lambda: not os.path.exists(name), name)


def until(holds, what):
    for _ in range(6000):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError(what)


def square(x):
    if x % 20 == 0:
        Event("go").wait()
    return x * x


def mark(dask_worker):
    """Makes a file by which the test finds the worker's processes."""
    open(f"{namespace}-{dask_worker.name.split('-')[0]}", "w").close()


def connected():
    return len(cluster.scheduler.workers)


squares = [x * x for x in range(1000)]
cluster = htc.HTCCluster(4, image=image, memory="1Gi", dashboard_address="127.0.0.1:0")
client = cluster.get_client()
cluster.wait_for_workers(4)
client.run(mark)

# Each worker comes to a task that waits, and three of them are evicted there.
futures = client.map(square, range(1000))
until(lambda: all(client.processing().values()), "the tasks")
step("mapping")
Event("go").set()
assert client.gather(futures) == squares
cluster.wait_for_workers(4)
assert cluster.observed == {0, 1, 2, 3}, cluster.observed

# Workers that go hand over their results.
cluster.scale(6)
cluster.wait_for_workers(6)
cluster.scale(2)
until(lambda: connected() == 2, "two workers")
assert client.gather(futures) == squares
step("two of six")

# Dask lets all go once nothing is to be done, and asks for some again.
del futures
adaptive = cluster.adapt(minimum=0, maximum=3)
until(lambda: not connected(), "no worker")
step("adapted to none")
assert client.gather(client.map(lambda x: x * x, range(1000))) == squares
adaptive.stop()

# The user does the same.
cluster.scale(0)
until(lambda: not connected(), "no worker")
cluster.scale(1)
assert client.submit(lambda: 42).result() == 42
cluster.close()

# An image that does not do: the error has the worker's words.
for wrong, words in {
    "python": "The image of a worker needs distributed, of the notebook's version",
    "centos": "python3",
}.items():
    with htc.HTCCluster(1, image=wrong, dashboard_address="127.0.0.1:0") as cluster:
        try:
            cluster.wait_for_workers(1)
        except htc.JobError as e:
            print(e)
            assert words in str(e), e
        else:
            raise AssertionError(wrong)

# SPDX-License-Identifier: Apache-2.0
"""Tasks of a cluster in processes of their own, which tests kill, stop and start again."""

import json
import subprocess
import sys
import tempfile
import threading

import harness
import numpy as np

# A task that waits for ever is an error and no hang.
LIMIT_SECONDS = 90


class Process:
    """A task that serves, or, with a graph, makes `steps` steps and says after each how many it has made. Its session sees
    the `places`, or else parameter servers, the chief and itself."""

    def __init__(self, jobs, job, index, path=None, steps=0, feeds=None, places=None):
        command = [sys.executable, "-u", __file__, json.dumps(jobs), job, str(index)]
        if path:
            file = tempfile.NamedTemporaryFile(suffix=".npz", dir=harness.workdir(), delete=False)
            np.savez(file, **{name.split(":")[0]: value for name, value in feeds.items()})
            file.close()
            command += [path, str(steps), file.name, *(places or ())]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.timer = threading.Timer(LIMIT_SECONDS, self.process.kill)
        self.timer.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def until(self, step):
        """Waits until it has made `step` steps; 0: until it serves."""
        for line in self.process.stdout:
            if int(line) >= step:
                return
        raise AssertionError(f"the task ended before step {step}")

    def send(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.timer.cancel()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def main(jobs, job, index, path=None, steps=0, feeds=None, *places):
    import time

    from models import tf1

    server = tf1.train.Server(json.loads(jobs), job_name=job, task_index=int(index))
    print(0, flush=True)
    if not path:
        server.join()
    feed = {f"{name}:0": value for name, value in np.load(feeds).items()}
    tf1.train.import_meta_graph(path)
    places = places or ("ps", "worker/task:0", f"{job}/task:{index}")
    config = tf1.ConfigProto(device_filters=[f"/job:{place}" for place in places])
    with tf1.Session(server.target, config=config) as session:
        for i in range(int(steps)):
            session.run("train_op", feed)
            print(i + 1, flush=True)
            time.sleep(0.02)


if __name__ == "__main__":
    main(*sys.argv[1:])

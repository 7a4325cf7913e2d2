"""A lock in order of arrival."""

import threading
import time

from robot_rl.arm.fair_lock import FairLock


def test_a_loop_that_takes_it_again_at_once_lets_others_in():
    lock, ended, passes = FairLock(), threading.Event(), 0

    def loop():
        while not ended.is_set():
            with lock:
                time.sleep(0.01)

    thread = threading.Thread(target=loop)
    thread.start()
    begin = time.monotonic()
    for _ in range(20):
        with lock:
            passes += 1
    took = time.monotonic() - begin
    ended.set()
    thread.join()
    assert passes == 20
    assert took < 3.0


def test_only_one_has_it_at_a_time():
    lock, inside, most = FairLock(), 0, 0

    def work():
        nonlocal inside, most
        for _ in range(200):
            with lock:
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_an_error_inside_gives_it_back():
    lock = FairLock()
    try:
        with lock:
            raise ValueError
    except ValueError:
        pass
    with lock:
        pass

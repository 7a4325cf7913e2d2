"""The contact wrench while the driver's thread adds readings and the loop tares."""

import sys
import threading

import numpy as np

from robot_rl.arm.wrench_filter import ContactWrench


def test_it_is_tared_while_readings_come_in(request):
    usual = sys.getswitchinterval()
    request.addfinalizer(lambda: sys.setswitchinterval(usual))
    sys.setswitchinterval(1e-6)  # [s], so that the threads take turns in the middle of everything
    contact, ended, failures = ContactWrench(cutoff=10.0), threading.Event(), []

    def read():
        try:
            for stamp in range(0, 10**12, 5_000_000):
                if ended.is_set():
                    return
                contact.add(stamp, np.full(6, 3.0))
        except Exception as error:  # noqa: BLE001 - whatever ends the thread is what is looked for
            failures.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        while not contact.tare():
            pass
        for _ in range(300):
            contact.tare()
            contact.take_peak()
    finally:
        ended.set()
        thread.join()
    assert failures == []
    assert np.allclose(contact.add(10**12, np.full(6, 3.0)), 0.0)

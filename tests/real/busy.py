# Threads that compute: the interpreter's switch requests are polled flags.
import sys, threading
sys.setswitchinterval(0.0005)
log, lock = [], threading.Lock()
def work(n):
    x = n
    for i in range(60000):
        x = (x * 1103515245 + 12345) % 2**31
        if i % 1000 == 0:
            log.append((n, x))
    with lock:
        log.append((n, "end"))
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(log)
assert len(log) == 4 * 61
print("done")

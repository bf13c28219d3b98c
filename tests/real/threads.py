# Threads that mostly wait: a queue, locks, an event, sleeping; little computing.
import queue, threading, time
q, out, lock, go = queue.Queue(10), [], threading.Lock(), threading.Event()
def work(n):
    go.wait()
    while (item := q.get()) is not None:
        time.sleep(0.001)
        with lock:
            out.append((n, item))
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for t in threads:
    t.start()
go.set()
for i in range(200):
    q.put(i)
for t in threads:
    q.put(None)
for t in threads:
    t.join()
print(out)
assert sorted(i for _, i in out) == list(range(200))
print("done")

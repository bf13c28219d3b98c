import os, random, secrets, socket, tempfile, threading, time, uuid
for _ in range(200):
    print(time.time(), time.monotonic_ns(), time.perf_counter_ns(), time.process_time_ns())
    print(random.random(), random.randrange(10**9), secrets.token_hex(8), uuid.uuid4(), uuid.uuid1())
print(os.getpid(), os.getppid(), threading.get_native_id(), id(object()), hash("a string"))
print(os.urandom(16).hex(), os.times(), os.getloadavg(), socket.gethostname())
with tempfile.NamedTemporaryFile() as f:
    print(f.name)
print({str(i) for i in range(50)})
print("done")

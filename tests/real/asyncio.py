import asyncio
async def serve(reader, writer):
    while line := await reader.readline():
        writer.write(line.upper())
        await writer.drain()
    writer.close()
async def ask(port, name):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    answers = []
    for i in range(30):
        writer.write(f"{name} asks {i}\n".encode())
        answers.append(await reader.readline())
        await asyncio.sleep(0.001)
    writer.close()
    return name, len(answers), answers[-1]
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for result in await asyncio.gather(*(ask(port, f"client {i}") for i in range(8))):
        print(*result)
    server.close()
    process = await asyncio.create_subprocess_exec("echo", "child", stdout=asyncio.subprocess.PIPE)
    print((await process.communicate())[0])
    print(await asyncio.get_running_loop().run_in_executor(None, sum, range(1000)))
    try:
        await asyncio.wait_for(asyncio.sleep(10), 0.05)
    except asyncio.TimeoutError:
        print("timed out")
asyncio.run(main())
print("done")

import subprocess, sys
print(subprocess.run(["echo", "from echo"], capture_output=True, text=True).stdout, end="")
print(subprocess.run("exit 5", shell=True).returncode)
p = subprocess.Popen(["tr", "a-z", "A-Z"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
print(len(p.communicate("words and words\n" * 20000)[0]), p.returncode)
first = subprocess.Popen(["seq", "1", "5000"], stdout=subprocess.PIPE)
second = subprocess.Popen(["sort", "-rn"], stdin=first.stdout, stdout=subprocess.PIPE, text=True)
first.stdout.close()
print(second.communicate()[0].splitlines()[:3], first.wait())
try:
    subprocess.run(["sleep", "30"], timeout=0.2)
except subprocess.TimeoutExpired:
    print("timed out")
child = subprocess.run([sys.executable, "-c", "import sys; sys.exit(9)"])
print(child.returncode)
print("done")

// Goes to and fro between itself and `library.c`.
int exported(int (*back)(int), int a);

int back(int a) { return exported(back, a) + 1; }

int main(void) { return exported(back, 2) + 1; }

// build:
// deterministic
// loses
// Proves: libstdc++ starts, iostream writes, an exception is caught.
#include "guest.h"
#include <iostream>
#include <stdexcept>
#include <string>
int main() {
  std::string s = "hello from";
  s += " c++";
  std::cout << s << std::endl;
  try {
    throw std::runtime_error("thrown");
  } catch (const std::exception &e) {
    std::cout << "caught " << e.what() << std::endl;
  }
  guest_ok("hello_cpp");
}

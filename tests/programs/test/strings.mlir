// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: string = hello
// CHECK-NEXT: string = hello, host
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = "tfrt_test.get_string"() {value = "hello"} : () -> !tfrt.string
  %b = "tfrt_test.get_string"() {value = ", host"} : () -> !tfrt.string
  %ab = "tfrt_test.append_string"(%a, %b) : (!tfrt.string, !tfrt.string) -> !tfrt.string
  %c1 = "tfrt_test.print_string"(%a, %c0) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
  %c2 = "tfrt_test.print_string"(%ab, %c1) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c2 : !tfrt.chain
}

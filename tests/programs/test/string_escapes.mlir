// A string is bytes: escapes are two hexadecimal digits, a backslash or a quote.
// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: string = a "quoted" \ word
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a = "tfrt_test.get_string"() {value = "a \22quoted\22 \\ \77ord"} : () -> !tfrt.string
  %c1 = "tfrt_test.print_string"(%a, %c0) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}

// The six lines go to stderr.
// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned !tfrt.chain value
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %s = "tfrt_test.get_string"() {value = "a line"} : () -> !tfrt.string
  %c1 = "tfrt_test.logging"(%s, %c0) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: string = {{.+}}
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %s = "tfrt_test.async_value_get"() : () -> !tfrt.string
  %c1 = "tfrt_test.print_string"(%s, %c0) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: hello host executor!
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %c1 = "tfrt_test.print_hello"(%c0) : (!tfrt.chain) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}

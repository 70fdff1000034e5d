// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: {{.+}}
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %c1 = "tfrt_test.print_debug_info"(%c0) : (!tfrt.chain) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}

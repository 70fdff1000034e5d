// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: string = sample_shared_context0
// CHECK-NEXT: string = sample_shared_context0
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %a, %c1 = "tfrt_test.use_sample_shared_context"(%c0) : (!tfrt.chain) -> (!tfrt.string, !tfrt.chain)
  %c2 = "tfrt_test.print_string"(%a, %c1) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
  %b, %c3 = "tfrt_test.use_sample_shared_context"(%c2) : (!tfrt.chain) -> (!tfrt.string, !tfrt.chain)
  %c4 = "tfrt_test.print_string"(%b, %c3) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c4 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned <<error: error chain>>
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %c1 = "tfrt_test.error_chain"(%c0) : (!tfrt.chain) -> !tfrt.chain // expected-error {{error chain}}
  %one = tfrt.constant.i32 1
  %c2 = tfrt.print.i32 %one, %c1
  tfrt.return %c2 : !tfrt.chain
}

// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned <<error: error chain>>
func.func @main() -> !tfrt.chain {
  %start = tfrt.constant.i32 0
  %end = tfrt.constant.i32 1
  %block = tfrt.constant.i32 1
  %done = tfrt.parallel_for.i32 %start to %end fixed %block {
    %c0 = tfrt.new.chain
    %bad = "tfrt_test.error_chain"(%c0) : (!tfrt.chain) -> !tfrt.chain // expected-error {{error chain}}
    tfrt.return %bad : !tfrt.chain
  }
  tfrt.return %done : !tfrt.chain
}

func.func @block(%start: i32, %end: i32) -> !tfrt.chain {
  %ch = tfrt.new.chain
  %bad = "tfrt_test.error_chain"(%ch) : (!tfrt.chain) -> !tfrt.chain // expected-error {{error chain}}
  tfrt.return %bad : !tfrt.chain
}

// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned <<error: error chain>>
func.func @main() -> !tfrt.chain {
  %start = tfrt.constant.i32 0
  %end = tfrt.constant.i32 1
  %block = tfrt.constant.i32 1
  %done = tfrt.parallel_call.i32 %start to %end fixed %block @block()
  tfrt.return %done : !tfrt.chain
}

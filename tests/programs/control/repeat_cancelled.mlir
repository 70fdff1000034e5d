// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned <<error: Cancelled>>
func.func @main() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %count = tfrt.constant.i32 1000000000
  %x = tfrt.constant.i32 0
  %0:2 = tfrt.repeat.i32 %count, %ch, %x : !tfrt.chain, i32 {
    %zero, %next = "tfrt_test.cancel"(%ch) : (!tfrt.chain) -> (i32, !tfrt.chain)
    tfrt.return %next, %zero : !tfrt.chain, i32
  }
  tfrt.return %0#0 : !tfrt.chain
}

func.func @inner(%ch: !tfrt.chain) -> i32 {
  %x, %done = "tfrt_test.cancel"(%ch) : (!tfrt.chain) -> (i32, !tfrt.chain)
  %sum = tfrt.add.i32 %x, %x
  tfrt.return %sum : i32
}

// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: 'main' returned <<error: Cancelled>>
func.func @main() -> i32 {
  %ch = tfrt.new.chain
  %x = tfrt.call @inner(%ch) : (!tfrt.chain) -> (i32)
  tfrt.return %x : i32
}

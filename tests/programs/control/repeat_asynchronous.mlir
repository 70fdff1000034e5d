// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: int32 = 100
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %count = tfrt.constant.i32 100
  %x = tfrt.constant.i32 0
  %last = tfrt.repeat.i32 %count, %x : i32 {
    %one = tfrt.constant.i32 1
    %next = "tfrt_test.async_add.i32"(%x, %one) : (i32, i32) -> i32
    tfrt.return %next : i32
  }
  %c1 = tfrt.print.i32 %last, %c0
  tfrt.return %c1 : !tfrt.chain
}

// A value that comes later starts all its users, the first in the program first.
// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: int32 = 4
// CHECK-NEXT: int32 = 5
// CHECK-NEXT: int32 = 6
func.func @main() {
  %c0 = tfrt.new.chain
  %three = tfrt.constant.i32 3
  %late = "tfrt_test.async_copy.i32"(%three) : (i32) -> i32
  %x:3 = tfrt_test.count3.i32 %late
  %a = tfrt.print.i32 %x#0, %c0
  %b = tfrt.print.i32 %x#1, %a
  %c = tfrt.print.i32 %x#2, %b
  tfrt.return
}

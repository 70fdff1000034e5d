// CHECK-LABEL: --- Running 'main':
// CHECK-NEXT: (2, -5)
func.func @main() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %x = tfrt.constant.i32 2
  %y = tfrt.constant.i32 -5
  %c = "tfrt_tutorial.create_coordinate"(%x, %y) : (i32, i32) -> !my.coordinate
  %c1 = "tfrt_tutorial.print_coordinate"(%c, %c0) : (!my.coordinate, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}

// The bounds are rebound to those of a block.
// CHECK-LABEL: --- Running 'blocks':
// CHECK-DAG: int32 = 0
// CHECK-DAG: int32 = 2
// CHECK-DAG: int32 = 4
// CHECK: 'blocks' returned !tfrt.chain value
func.func @blocks() -> !tfrt.chain {
  %start = tfrt.constant.i32 0
  %end = tfrt.constant.i32 5
  %block = tfrt.constant.i32 2
  %done = tfrt.parallel_for.i32 %start to %end fixed %block {
    %c0 = tfrt.new.chain
    %c1 = tfrt.print.i32 %start, %c0
    tfrt.return
  }
  tfrt.return %done : !tfrt.chain
}

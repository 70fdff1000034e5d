// RUN: tfrt_opt -inline -canonicalize

// CHECK-LABEL: func.func @twice
func.func @twice(%x: i32, %ch: !tfrt.chain) -> (i32, !tfrt.chain) {
  // CHECK-NEXT: tfrt.return %arg0, %arg1
  "tfrt.return"(%x, %ch) : (i32, !tfrt.chain) -> ()
}

// CHECK-LABEL: func.func @main
// CHECK-NOT: tfrt.constant
// CHECK-NOT: tfrt.call
// CHECK: tfrt.print.i32 %arg0, %arg1
// CHECK-NEXT: tfrt.merge.chains
// CHECK-NOT: tfrt.merge.chains
func.func @main(%x: i32, %ch: !tfrt.chain) -> (!tfrt.chain, !tfrt.chain) {
  %unused = "tfrt.constant.i32"() {value = 1 : i32} : () -> i32
  %y, %c = "tfrt.call"(%x, %ch) {callee = @twice} : (i32, !tfrt.chain) -> (i32, !tfrt.chain)
  %one = "tfrt.merge.chains"(%c, %c) : (!tfrt.chain, !tfrt.chain) -> !tfrt.chain
  %d = "tfrt.print.i32"(%y, %one) : (i32, !tfrt.chain) -> !tfrt.chain
  %both = "tfrt.merge.chains"(%d, %c, %d) : (!tfrt.chain, !tfrt.chain, !tfrt.chain) -> !tfrt.chain
  "tfrt.return"(%both, %d) : (!tfrt.chain, !tfrt.chain) -> ()
}

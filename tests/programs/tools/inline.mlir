// RUN: tfrt_opt -inline

// A function that calls itself stays, and a non-strict call too.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: tfrt.add.i32
// CHECK-NEXT: tfrt.call @itself
// CHECK-NEXT: bef.nonstrict
// CHECK-NEXT: tfrt.return
func.func @twice(%x: i32) -> i32 {
  %y = "tfrt.add.i32"(%x, %x) : (i32, i32) -> i32
  "tfrt.return"(%y) : (i32) -> ()
}
func.func @itself(%x: i32) -> i32 {
  %y = "tfrt.call"(%x) {callee = @itself} : (i32) -> i32
  "tfrt.return"(%y) : (i32) -> ()
}
func.func @main(%x: i32) -> i32 {
  %a = "tfrt.call"(%x) {callee = @twice} : (i32) -> i32
  %b = "tfrt.call"(%a) {callee = @itself} : (i32) -> i32
  %c = "tfrt.call"(%b) {callee = @twice, bef.nonstrict} : (i32) -> i32
  "tfrt.return"(%c) : (i32) -> ()
}

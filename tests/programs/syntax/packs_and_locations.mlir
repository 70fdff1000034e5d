// Results in packs, names of values that are numbers, and a location for a diagnostic.
#place = loc("made.by.hand":7:3)

// CHECK-LABEL: --- Running 'packs':
// CHECK-NEXT: 'packs' returned 3,1
func.func @packs() -> (i32, i32) {
  %0 = "tfrt.constant.i32"() {value = 10 : i32} : () -> i32
  %1 = "tfrt.constant.i32"() {value = 3 : i32} : () -> i32
  %2:2 = "tfrt.div.i32"(%0, %1) : (i32, i32) -> (i32, i32) loc(#place)
  "tfrt.return"(%2#0, %2#1) : (i32, i32) -> ()
}

// RUN: tfrt_opt --allow-unregistered-dialect

// Attributes of every kind print as MLIR prints them.
// CHECK-LABEL: func.func @attributes
func.func @attributes() {
  // CHECK-NEXT: "k.numbers"() {a = -1 : i8, b = 255 : ui8, c = 7 : i64, d = true, e = 1.500000e+00 : f64, f = 5.000000e-01 : f16}
  "k.numbers"() {a = -1 : i8, b = 255 : ui8, c = 7 : i64, d = true, e = 1.5 : f64, f = 0.5 : f16} : () -> ()
  // CHECK-NEXT: "k.others"() {a = [1, [2 : i32, "x"]], b = dense<[1, 2]> : tensor<2xi32>, c = dense<0> : tensor<2x2xi64>, d = f32, e = "q\22uote"}
  "k.others"() {e = "q\"uote", d = f32, c = dense<0> : tensor<2x2xi64>, b = dense<[1, 2]> : tensor<2xi32>, a = [1, [2 : i32, "x"]]} : () -> ()
  // CHECK-NEXT: "k.shapes"() {a = #corert.shape<2x?x3>, b = #corert.shape<*>, c = @attributes, unit}
  "k.shapes"() {a = #corert.shape<2x?x3>, b = #corert.shape<*>, c = @attributes, unit} : () -> ()
  "tfrt.return"() : () -> ()
}

"""Detections: objects in a picture, by the names that TensorFlow's detection models give to their outputs.

    detection_boxes    [rows, objects, 4]: top, left, bottom, right, as shares of the picture's height and width
    detection_scores   [rows, objects]
    detection_classes  [rows, objects], where the model has classes
    num_detections     [rows], where not all objects count
    detection_masks    [rows, objects, height, width] within the box, where the model has masks

Classes count from 1, as in TensorFlow's label maps: class 1 is the first label. A list of labels whose first name
stands for the background (`background`, `???`, `unlabeled`) begins at class 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

BOXES, SCORES, CLASSES, COUNT, MASKS = ROLES = (
    "detection_boxes", "detection_scores", "detection_classes", "num_detections", "detection_masks")
BACKGROUND = ("background", "???", "unlabeled", "__background__")
THRESHOLD = 0.5  # least score, where the user gives none

Detection = dict[str, Any]


def find_roles(outputs: Mapping[str, Any]) -> dict[str, str] | None:
    """The outputs' names by role; None for a model that finds no objects."""
    by_role = {name.removesuffix(":0").rpartition("/")[2]: name for name, array in outputs.items()
               if hasattr(array, "ndim")}
    roles = {role: by_role[role] for role in ROLES if role in by_role}
    if BOXES not in roles or SCORES not in roles:
        return None
    boxes, scores = outputs[roles[BOXES]], outputs[roles[SCORES]]
    return roles if boxes.ndim == 3 and boxes.shape[2] == 4 and scores.shape == boxes.shape[:2] else None


def detections_of(roles: Mapping[str, str], outputs: Mapping[str, Any], names: Sequence[str] | None,
                  threshold: float | None) -> list[list[Detection]]:
    """The objects of each row whose score reaches the threshold, best first."""
    arrays = {role: outputs[name] for role, name in roles.items()}
    return [objects_of_row({role: array[row] for role, array in arrays.items()}, names, threshold)
            for row in range(len(arrays[SCORES]))]


def objects_of_row(arrays: Mapping[str, Any], names: Sequence[str] | None, threshold: float | None,
                   ) -> list[Detection]:
    """The objects of one row. `arrays`: by role."""
    return [_detection(arrays, index, names) for index in indices_of_row(arrays, threshold)]


def indices_of_row(arrays: Mapping[str, Any], threshold: float | None) -> list[int]:
    """The objects whose score reaches the threshold, best first."""
    scores = arrays[SCORES]
    count = min(len(scores), int(arrays[COUNT].reshape(-1)[0])) if COUNT in arrays else len(scores)
    least = THRESHOLD if threshold is None else threshold
    return sorted((index for index in range(count) if scores[index] >= least), key=lambda index: -float(scores[index]))


def class_name(number: int, names: Sequence[str]) -> str:
    """The label of a class, or its number where no label is for it."""
    index = number - (0 if names and names[0].lower() in BACKGROUND else 1)
    return names[index] if 0 <= index < len(names) else str(number)


def _detection(arrays: Mapping[str, Any], index: int, names: Sequence[str] | None) -> Detection:
    detection: Detection = {}
    if CLASSES in arrays:
        number = int(arrays[CLASSES][index])
        if names is not None:
            detection["label"] = class_name(number, names)
        detection["class"] = number
    detection["score"] = _shortest(arrays[SCORES][index])
    detection["box"] = [_shortest(value) for value in arrays[BOXES][index]]
    return detection


def _shortest(value: Any) -> float:
    """A float whose text is the shortest that reads back as the value in its own type."""
    return float(str(value))
